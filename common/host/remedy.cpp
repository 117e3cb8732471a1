// Which paths and accounts a command in a message may name.
#include "common/host/remedy.hpp"

#include "common/base/error.hpp"
#include "common/host/beneath.hpp"

#include <array>
#include <fmt/ranges.h>

namespace pi_agent {

namespace {

constexpr std::array<const char *, 6> own_directories = {"/etc/pi-agent",       "/usr/lib/pi-agent", "/usr/libexec/pi-agent",
                                                         "/usr/share/pi-agent", "/var/lib/pi-agent", "/var/log/pi-agent"};

bool lies_in_own_directory(const std::string &path)
{
    return std::any_of(own_directories.begin(), own_directories.end(),
                       [&](const std::string &directory) { return is_within(path, directory); });
}

// Between the message and the command nobody but root may be able to put something else there: a chmod follows links.
void require_root_alone_can_exchange(const PathStep &holder, const PathStep &entry)
{
    const bool is_roots = holder.status.st_uid == 0 && (holder.status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!is_roots || S_ISLNK(entry.status.st_mode)) throw Failure(ExitStatus::configuration, entry.path + " can lead elsewhere");
}

bool is_own(const std::string &path)
{
    if (!is_property_safe(path) || !lies_in_own_directory(path)) return false;
    try {
        const PathStep step = walk_path(path, require_root_alone_can_exchange);
        const bool has_one_name = S_ISDIR(step.status.st_mode) || (S_ISREG(step.status.st_mode) && step.status.st_nlink == 1);
        return step.path == path && has_one_name;
    } catch (const Failure &) {
        return false; // what cannot be looked at is not known to be harmless
    }
}

// The names that apply gives: pi-agent, and pi-agent-USER. Another one is the policy's word, and may be anybody's.
bool is_own_account(const std::string &account)
{
    const std::string own = "pi-agent";
    return account == own || account.compare(0, own.size() + 1, own + "-") == 0;
}

} // namespace

std::string command_on(const std::string &command, const std::string &path, const std::string &otherwise)
{
    return is_own(path) ? "run: " + command + " " + path : otherwise;
}

std::string command_about(const std::string &account, const std::vector<std::string> &words, const std::string &otherwise)
{
    const bool is_plain = std::all_of(words.begin(), words.end(), [](const auto &word) { return !word.empty() && is_property_safe(word); });
    return is_own_account(account) && is_plain ? fmt::format("run: {}", fmt::join(words, " ")) : otherwise;
}

std::string name_as_word(const std::string &name)
{
    if (!name.empty() && is_made_of(name, "_-.@+")) return name;
    std::string inside;
    for (const char byte : name)
        inside += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    std::string others = name;
    std::erase(others, '\\');
    return escape_for_display(others) == others ? "'" + inside + "'" : escape_for_display(name); // nobody pastes that one
}

} // namespace pi_agent
