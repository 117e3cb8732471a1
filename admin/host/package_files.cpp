// Copies the files of /etc that packages ship and nobody changed, for sessions: they are public, whatever they are about.
#include "admin/host/host_things.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/plan/host_view.hpp"

#include <filesystem>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>
#include <sstream>
#include <sys/file.h>

namespace pi_agent {

namespace {

constexpr const char *status_file = "/var/lib/dpkg/status";
constexpr const char *updates_directory = "/var/lib/dpkg/updates"; // of packages since dpkg, which may run now, wrote the other file
constexpr const char *info_directory = "/var/lib/dpkg/info";
constexpr std::size_t status_limit = std::size_t{256} << 20U;
constexpr std::size_t file_limit = std::size_t{1} << 20U; // as of the files that a start copies (runner/as_agent/home.hpp)
constexpr std::size_t sum_digits = 32;
constexpr mode_t copy_mode = 0644;
constexpr mode_t copies_mode = 0755;
constexpr const char *name_while_written = ".new"; // in the directory of the copies, where no file of /etc has that name

constexpr const char *never_shown_of_etc[] = {
#include "runner/etc_never.inc"
};

// Paths below /etc, each with the MD5 sums that packages say of it.
using ShippedFiles = std::map<std::string, std::set<std::string>>;

void add_shipped(ShippedFiles &shipped, std::string_view path, std::string_view sum)
{
    constexpr std::string_view etc = "etc/";
    if (path.starts_with('/')) path.remove_prefix(1);
    if (!path.starts_with(etc) || has_odd_component(path) || sum.size() != sum_digits || !is_made_of(sum, "")) return;
    path.remove_prefix(etc.size());
    const std::string below(path);
    const auto holds = [&](const char *pattern) { return fnmatch(pattern, below.c_str(), FNM_PATHNAME | FNM_LEADING_DIR) == 0; };
    if (std::ranges::none_of(never_shown_of_etc, holds)) shipped[below].insert(std::string(sum));
}

// dpkg may run now, and replace its files.
std::string text_if_there(const std::string &file)
{
    return if_there([&] { return read_trusted_file(file, status_limit, "file of dpkg's"); });
}

// " /etc/lynx/lynx.cfg 0123… obsolete", in the field Conffiles of each package.
void add_conffiles(ShippedFiles &shipped, const std::string &file)
{
    const std::string text = text_if_there(file);
    bool is_conffile = false;
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with(' ')) {
            is_conffile = line == "Conffiles:";
        } else if (is_conffile) {
            if (const auto words = split(line.substr(1), ' '); words.size() >= 2) add_shipped(shipped, words[0], words[1]);
        }
    }
}

// "0123…  etc/X11/rgb.txt": what a package has in /etc and does not call a conffile.
void add_other_files(ShippedFiles &shipped)
{
    for (const auto &name : list_trusted_directory(info_directory, ".md5sums", "dpkg's lists of files")) {
        const std::string text = text_if_there(join_path(info_directory, name)); // the parts refer to it
        for (const auto line : split(text, '\n'))
            if (line.size() > sum_digits + 2 && line.substr(sum_digits, 6) == "  etc/")
                add_shipped(shipped, line.substr(sum_digits + 2), line.substr(0, sum_digits));
    }
}

std::string md5_of(const std::string &content)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    std::size_t size = 0;
    if (EVP_Q_digest(nullptr, "MD5", nullptr, content.data(), content.size(), sum.data(), &size) != 1) return ""; // a host that forbids MD5
    return fmt::format("{:02x}", fmt::join(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(size), ""));
}

// A file of /etc that everybody may read, with its content.
struct PublicFile {
    std::string content;
    struct stat facts {};
};

bool can_be_passed_by_all(FdRef etc, const std::string &path)
{
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        struct stat facts {};
        if (::fstatat(etc.get(), path.substr(0, slash).c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(facts.st_mode) ||
            (facts.st_mode & S_IXOTH) == 0)
            return false;
    }
    return true;
}

// Others than root may own directories of /etc. So no link is followed, and what counts is the content: it is what the package ships.
std::optional<PublicFile> find_unchanged(FdRef etc, const std::string &path, const std::set<std::string> &sums)
{
    if (!can_be_passed_by_all(etc, path)) return std::nullopt;
    const UniqueFd file = find_beneath(etc, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    PublicFile found;
    if (!file || ::fstat(file.get(), &found.facts) != 0 || !S_ISREG(found.facts.st_mode)) return std::nullopt;
    if ((found.facts.st_mode & S_IROTH) == 0 || static_cast<std::size_t>(found.facts.st_size) > file_limit) return std::nullopt;
    found.content = read_whole(file, file_limit, "/etc/" + path);
    const bool is_unchanged = sums.contains(md5_of(found.content)) || !defence_is_on("unchanged-package-files");
    return is_unchanged ? std::optional(std::move(found)) : std::nullopt;
}

bool is_same(const struct stat &one, const struct stat &other)
{
    return one.st_size == other.st_size && one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

// The copy has the time of the file, by which a start sees that it is still the same one (runner/as_agent/home.hpp).
void write_copy(FdRef copies, const std::string &path, const PublicFile &file)
{
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        const std::string directory = path.substr(0, slash);
        if (::mkdirat(copies.get(), directory.c_str(), copies_mode) == 0 ? ::fchmodat(copies.get(), directory.c_str(), copies_mode, 0) != 0
                                                                         : errno != EEXIST)
            throw_errno("cannot create " + join_path(package_files_directory, directory));
    }
    const UniqueFd made = open_or_throw("cannot create a copy of /etc/" + path, copies, name_while_written,
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, copy_mode);
    write_whole(made, file.content, name_while_written);
    const std::array<struct timespec, 2> times = {file.facts.st_mtim, file.facts.st_mtim};
    if (::fchmod(made.get(), copy_mode) != 0 || ::futimens(made.get(), times.data()) != 0 ||
        ::renameat(copies.get(), name_while_written, copies.get(), path.c_str()) != 0)
        throw_errno("cannot write a copy of /etc/" + path);
}

// Only root can change what is there.
void remove_others(const std::map<std::string, PublicFile> &kept)
{
    namespace fs = std::filesystem;
    std::vector<fs::path> found;
    for (const auto &entry : fs::recursive_directory_iterator(package_files_directory))
        found.push_back(entry.path());
    std::ranges::reverse(found); // what is in a directory comes before it
    std::error_code not_empty;
    for (const auto &path : found)
        if (!kept.contains(path.lexically_relative(package_files_directory).string())) fs::remove(path, not_empty);
}

} // namespace

void copy_package_files(const AsRoot & /*root*/)
{
    const UniqueFd copies = open_trusted(package_files_directory, O_RDONLY | O_DIRECTORY, "copies of packages' files");
    if (::flock(copies.get(), LOCK_EX) != 0) throw_errno(std::string("cannot lock ") + package_files_directory);
    ShippedFiles shipped;
    add_conffiles(shipped, status_file);
    for (const auto &name : list_trusted_directory(updates_directory, "", "dpkg's news"))
        add_conffiles(shipped, join_path(updates_directory, name));
    add_other_files(shipped);
    const UniqueFd etc = open_trusted("/etc", O_PATH | O_DIRECTORY, "host's");
    std::map<std::string, PublicFile> kept;
    for (const auto &[path, sums] : shipped)
        if (auto file = find_unchanged(etc, path, sums)) kept.emplace(path, std::move(*file));
    remove_others(kept); // first: a package may have made a directory of a file
    for (const auto &[path, file] : kept) {
        struct stat facts {};
        const bool is_there = ::fstatat(copies.get(), path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && is_same(facts, file.facts);
        if (!is_there) write_copy(copies, path, file);
    }
    spdlog::debug("{} of {} files that packages have in /etc are unchanged and public", kept.size(), shipped.size());
}

void make_package_files(const AsRoot &root, std::ostream &warnings)
{
    std::ostringstream nowhere;
    Changes untold(false, nowhere);
    try {
        make_root_directory(root, package_files_directory, copies_mode, untold);
        copy_package_files(root);
    } catch (const std::exception &failure) {
        warnings << "pi-agentctl: warning: sessions see less of what packages have in /etc: " << failure.what() << '\n';
    }
}

void forget_package_files(const AsRoot & /*root*/, Changes &changes)
{
    struct stat facts {};
    if (::lstat(package_files_directory, &facts) != 0) return;
    changes.make(std::string("remove ") + package_files_directory + ", with copies of files that packages have in /etc",
                 [] { std::filesystem::remove_all(package_files_directory); });
}

} // namespace pi_agent
