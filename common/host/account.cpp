// Look-ups in the user database, with buffers that grow as far as an entry needs.
#include "common/host/account.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <grp.h>
#include <limits>
#include <pwd.h>
#include <set>

namespace pi_agent {

namespace {

constexpr std::size_t largest_entry = 64U << 20U; // a group of a directory service may list every member

std::vector<gid_t> all_groups(const passwd &entry)
{
    std::vector<gid_t> groups(32);
    for (;;) {
        if (int count = static_cast<int>(groups.size()); ::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) >= 0) {
            groups.resize(static_cast<std::size_t>(count));
            return groups;
        }
        if (groups.size() > std::numeric_limits<unsigned short>::max())
            throw SystemFailure(E2BIG, "cannot list the groups of " + escape_for_display(entry.pw_name));
        groups.resize(groups.size() * 2);
    }
}

Account to_account(const passwd &entry)
{
    if (entry.pw_dir == nullptr || entry.pw_dir[0] != '/')
        throw Failure(ExitStatus::configuration, "the user database gives " + escape_for_display(entry.pw_name) +
                                                     " no absolute home directory; ask the administrator to correct it there");
    return Account{entry.pw_name, Uid(entry.pw_uid), Gid(entry.pw_gid), entry.pw_dir, all_groups(entry)};
}

// What `take` makes of the entry that `look_up` finds. Repeats the look-up until the answer fits into the buffer.
template <typename Entry, typename Key, typename Take>
auto find_entry(const char *kind, const std::string &wanted, int (*look_up)(Key, Entry *, char *, std::size_t, Entry **), Key key,
                const Take &take) -> std::optional<decltype(take(Entry{}))>
{
    std::vector<char> buffer(1024);
    Entry entry{};
    Entry *found = nullptr;
    for (;;) {
        const int error = look_up(key, &entry, buffer.data(), buffer.size(), &found);
        if (error == EINTR) continue;
        if (error == ERANGE && buffer.size() < largest_entry) {
            buffer.resize(buffer.size() * 4);
            continue;
        }
        if (found != nullptr) return take(entry);
        // POSIX lets "no such entry" be any of these besides a plain success without a result.
        if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM) return std::nullopt;
        throw SystemFailure(error, std::string("cannot look up ") + kind + " " + escape_for_display(wanted));
    }
}

const AccountTable *(*find_table)() = [] { return static_cast<const AccountTable *>(nullptr); };

template <typename Entries, typename Key>
auto value_in(const Entries &entries, const Key &key) -> std::optional<typename Entries::mapped_type>
{
    const auto found = entries.find(key);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
}

// What programs take for a number: an id, in any base that C knows.
bool reads_as_number(std::string_view name) noexcept
{
    constexpr std::string_view digits = "0123456789";
    const bool has_base = name.size() > 2 && name[0] == '0' && std::string_view("xXbBoO").find(name[1]) != std::string_view::npos;
    return (has_base ? name.substr(2) : name).find_first_not_of(has_base ? "0123456789abcdefABCDEF" : digits) == std::string_view::npos;
}

// In this order: root by another name; root by asking a service; raw devices, terminals, keyboard and screen, microphone, what is plugged
// in; the host's network and radios, by their services or by capturing packets; logs and secrets; private keys; the print service's
// configuration, which root follows; /usr/local, which lies on root's own PATH. docs/reference/policy-files.md says the same.
constexpr std::string_view privileged_names =
    "root sudo wheel admin docker podman lxd incus incus-admin libvirt libvirt-qemu kvm microk8s disk kmem tty input video audio tape "
    "cdrom floppy dialout plugdev vboxusers netdev bluetooth wireshark adm systemd-journal utmp shadow ssl-cert lpadmin staff";

// Only the numbers that the host gives to these names: two names may share one. Asked once, because a directory service is slow.
const std::vector<Gid> &privileged_gids()
{
    static const std::vector<Gid> gids = [] {
        std::vector<Gid> found = {Gid(0)};
        for (const auto name : split(privileged_names, ' '))
            if (const auto gid = find_group(std::string(name))) found.push_back(*gid);
        return found;
    }();
    return gids;
}

} // namespace

void answer_from_table(const AccountTable *(*find)())
{
    find_table = find;
}

std::optional<Account> find_account(Uid uid)
{
    if (const auto *table = find_table()) {
        const auto name = value_in(table->names, uid.value());
        return name ? value_in(table->accounts, *name) : std::nullopt;
    }
    return find_entry("user", std::to_string(uid.value()), ::getpwuid_r, uid.value(), to_account);
}

std::optional<Account> find_account(const std::string &name)
{
    if (const auto *table = find_table()) return value_in(table->accounts, name);
    return find_entry("user", name, ::getpwnam_r, name.c_str(), to_account);
}

std::string name_or_number(Uid uid)
{
    const auto account = find_account(uid);
    return account ? account->name : "uid " + std::to_string(uid.value());
}

std::optional<Gid> find_group(const std::string &name)
{
    if (const auto *table = find_table()) return value_in(table->groups, name);
    return find_entry("group", name, ::getgrnam_r, name.c_str(), [](const group &entry) { return Gid(entry.gr_gid); });
}

std::optional<std::string> group_name(Gid gid)
{
    if (const auto *table = find_table()) return value_in(table->group_names, gid.value());
    const auto name_of = [](const group &entry) { return std::string(entry.gr_name); };
    return find_entry("group", std::to_string(gid.value()), ::getgrgid_r, gid.value(), name_of);
}

bool have_same_groups(const Account &one, const Account &other)
{
    return std::set<gid_t>(one.groups.begin(), one.groups.end()) == std::set<gid_t>(other.groups.begin(), other.groups.end());
}

bool is_account_name(const std::string &name) noexcept
{
    constexpr std::size_t longest = 256;
    constexpr std::string_view inside = "_-.@+'\\ ";
    const auto is_letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte & '\x80') != 0; };
    const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
    if (name.empty() || name.size() > longest || name.back() == ' ' || reads_as_number(name)) return false;
    if (!is_letter(name.front()) && !is_digit(name.front()) && name.front() != '_') return false;
    const bool known = std::all_of(name.begin(), name.end(), [&](char byte) {
        return is_letter(byte) || is_digit(byte) || inside.find(byte) != std::string_view::npos;
    });
    std::string others = name; // letters of all languages, and nothing that only looks like one
    std::erase(others, '\\');
    return known && escape_for_display(others) == others;
}

std::string short_name(const Account &user)
{
    return is_plain_name(user.name) ? user.name : "@" + std::to_string(user.uid.value());
}

std::string short_name_of(const std::string &user)
{
    if (is_plain_name(user)) return user;
    const auto account = find_account(user);
    return account ? short_name(*account) : user;
}

std::string user_of_short_name(const std::string &name)
{
    const auto uid = name.starts_with('@') ? to_number<uid_t>(std::string_view(name).substr(1)) : std::nullopt;
    return uid ? name_or_number(Uid(*uid)) : name;
}

bool is_plain_name(const std::string &name) noexcept
{
    if (name.empty() || name.size() > 32 || name.find("..") != std::string::npos) return false;
    const auto is_start = [](char byte) { return (byte >= 'a' && byte <= 'z') || byte == '_'; };
    if (!is_start(name.front())) return false;
    return std::all_of(name.begin(), name.end(), [&](char byte) {
        const bool digit = byte >= '0' && byte <= '9';
        return is_start(byte) || digit || byte == '.' || byte == '-';
    });
}

bool is_privileged_group(std::string_view name)
{
    return has_word(privileged_names, name);
}

bool is_privileged_group(Gid gid)
{
    if (!defence_is_on("privileged-groups")) return false;
    const auto &gids = privileged_gids();
    return std::find(gids.begin(), gids.end(), gid) != gids.end();
}

} // namespace pi_agent
