// The fields of a copied ssh key.
#include "runner/wire/ssh_files.hpp"

#include "common/base/channel.hpp"
#include "common/base/escape.hpp"

namespace pi_agent {

std::string SshFiles::encode() const
{
    return Encoder().text(key).text(known_hosts).texts(notices).bytes();
}

SshFiles SshFiles::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    SshFiles files{decoder.text(), decoder.text(), decoder.texts(3)};
    decoder.end();
    if (files.key.size() > ssh_key_limit || files.known_hosts.size() > 2 * known_hosts_limit + 2)
        throw ProtocolError("the key of the user's is not what was asked for");
    return files;
}

SshFiles without_ssh_key(const std::string &path, const std::string &problem)
{
    return {"", "", {"ssh: the agent's git cannot use the key " + escape_for_display(path) + ": " + escape_for_display(problem)}};
}

} // namespace pi_agent
