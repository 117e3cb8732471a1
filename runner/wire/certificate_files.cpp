// The fields of copied certificates.
#include "runner/wire/certificate_files.hpp"

#include "common/base/channel.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t variables_limit = 100;

} // namespace

std::string certificate_path_inside(std::size_t number)
{
    return "/run/pi-agent/ca/" + std::to_string(number) + ".pem";
}

std::string CertificateFiles::encode() const
{
    std::vector<std::string> pairs;
    for (const auto &[name, path] : renamed)
        pairs.insert(pairs.end(), {name, path});
    return Encoder().texts(contents).texts(pairs).texts(notices).bytes();
}

CertificateFiles CertificateFiles::decode(std::string_view bytes)
{
    Decoder decoder(bytes);
    CertificateFiles files;
    files.contents = decoder.texts(variables_limit);
    const std::vector<std::string> pairs = decoder.texts(2 * variables_limit);
    files.notices = decoder.texts(variables_limit);
    decoder.end();
    std::size_t size = 0;
    for (const auto &content : files.contents)
        size += content.size();
    bool is_sound = size <= certificates_limit && pairs.size() % 2 == 0;
    for (std::size_t index = 0; is_sound && index < pairs.size(); index += 2) {
        is_sound = false;
        for (std::size_t number = 1; number <= files.contents.size(); ++number)
            is_sound = is_sound || pairs[index + 1] == certificate_path_inside(number);
        files.renamed[pairs[index]] = pairs[index + 1];
    }
    if (!is_sound) throw ProtocolError("certificates of the user's are not what was asked for");
    return files;
}

} // namespace pi_agent
