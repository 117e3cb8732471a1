// The copy of an ssh key: runner/as_user/reader.hpp
#include "runner/as_user/reader.hpp"

#include "support/temporary_directory.hpp"

#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace ssh_key_test {

namespace {

// The beginnings of real keys, which is all that is looked at: without a passphrase, and with one.
const std::string open_key =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n";
const std::string closed_key =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAG\n-----END OPENSSH PRIVATE KEY-----\n";
const std::string old_open_key = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\n";
const std::string old_closed_key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB\n-----END RSA PRIVATE KEY-----\n";

std::string problem_of(const TemporaryDirectory &home, const std::string &name)
{
    const SshFiles files = read_ssh_files(UserPaths({}), home / name, std::nullopt, home.path());
    CHECK(files.key.empty());
    CHECK(files.known_hosts.empty());
    return files.notices.size() == 1 ? files.notices[0] : std::to_string(files.notices.size()) + " notices";
}

} // namespace

TEST_CASE("a key without a passphrase is read, with the hosts that the user knows")
{
    const TemporaryDirectory home;
    home.make(".ssh");
    home.write("key", open_key);
    CHECK(read_ssh_files(UserPaths({}), home / "key", std::nullopt, home.path()).key == open_key);
    home.write(".ssh/known_hosts", "a ssh-ed25519 x");
    home.write("old", old_open_key);
    const SshFiles files = read_ssh_files(UserPaths({}), home / "old", std::nullopt, home.path());
    CHECK(files.key == old_open_key);
    CHECK(files.known_hosts.find("a ssh-ed25519 x\n") == 0);
    CHECK(files.notices.empty());
}

TEST_CASE("a key that signs is read with the other one, or alone, and each that cannot be is told")
{
    const TemporaryDirectory home;
    home.make(".ssh");
    home.write(".ssh/known_hosts", "a ssh-ed25519 x");
    home.write("key", open_key);
    home.write("signing", old_open_key);
    home.write("closed", closed_key);
    const SshFiles alone = read_ssh_files(UserPaths({}), std::nullopt, home / "signing", home.path());
    CHECK(alone.key + alone.known_hosts == "");
    CHECK(alone.signing_key == old_open_key);
    const SshFiles both = read_ssh_files(UserPaths({}), home / "key", home / "closed", home.path());
    CHECK(both.key == open_key);
    CHECK(both.signing_key.empty());
    REQUIRE(both.notices.size() == 1);
    CHECK(both.notices[0].starts_with("signing: the agent's git cannot use the key " + (home / "closed")));
}

TEST_CASE("what is no key that the agent could use is told by its name")
{
    const TemporaryDirectory home;
    home.write("closed", closed_key);
    home.write("old", old_closed_key);
    home.write("public", "ssh-ed25519 AAAA\n");
    home.write("long", std::string(20'000, 'x'));
    home.make("directory");
    REQUIRE(mkfifo((home / "pipe").c_str(), 0600) == 0);
    CHECK(problem_of(home, "closed").find("has a passphrase") != std::string::npos);
    CHECK(problem_of(home, "old").find("has a passphrase") != std::string::npos);
    CHECK(problem_of(home, "public").find("no private key") != std::string::npos);
    CHECK(problem_of(home, "long").find("larger than 16384") != std::string::npos);
    CHECK(problem_of(home, "directory").find("not a regular file") != std::string::npos);
    CHECK(problem_of(home, "pipe").find("not a regular file") != std::string::npos);
    CHECK(problem_of(home, "missing").find(home / "missing: ") != std::string::npos);
}

TEST_CASE("known hosts that cannot be read are told, and the key is used all the same")
{
    const TemporaryDirectory home;
    home.make(".ssh/known_hosts");
    home.write("key", open_key);
    const SshFiles files = read_ssh_files(UserPaths({}), home / "key", std::nullopt, home.path());
    CHECK(files.key == open_key);
    REQUIRE(files.notices.size() == 1);
    CHECK(files.notices[0].find("known_hosts") != std::string::npos);
}

} // namespace ssh_key_test
