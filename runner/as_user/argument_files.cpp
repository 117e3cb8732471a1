// Copies of the files that the user names on the command line, made as the user.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

namespace pi_agent {

namespace {

constexpr int copied_levels = 40;

std::size_t copies_size()
{
    return defence_is_on("copies-limit") ? copies_size_limit : std::size_t{1} << 30U;
}

[[noreturn]] void refuse_copy(const std::string &path, const std::string &why)
{
    throw Failure(FailureKind::named_file, escape_for_display(path) + " of your arguments is not handed to the agent: " + why);
}

// A symlink to something beside it stays one: a program that finds its parts through symlinks finds them in the copy too.
bool stays_in_copy(const std::string &target, int depth)
{
    return !target.empty() && target.front() != '/' && !leads_above(target, depth);
}

class Copying {
public:
    Copying(const UserPaths &paths, FdRef copies) : paths_(paths), copies_(copies) {}

    void add(std::size_t number, const std::string &path, const UserPlacePtr &place)
    {
        named_ = &path;
        const UniqueFd directory = make_directory(copies_, std::to_string(number));
        const std::string name = path.substr(path.rfind('/') + 1);
        if (S_ISDIR(place->facts.st_mode)) return copy_tree(place, directory, name, 0);
        copy_file(open_host_file(*place), directory, name);
    }

    [[nodiscard]] std::vector<std::string> notices() const { return notices_; }

private:
    UniqueFd make_directory(FdRef above, const std::string &name)
    {
        count();
        if (mkdirat(above.get(), name.c_str(), 0755) != 0) throw_errno("copying " + escape_for_display(*named_));
        UniqueFd directory = open_or_throw("copying " + escape_for_display(*named_), above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (fchmod(directory.get(), 0755) != 0) throw_errno("copying " + escape_for_display(*named_)); // whatever the umask
        return directory;
    }

    void count()
    {
        if (++count_ > copies_count_limit)
            refuse_copy(*named_, "with it, your arguments name more than " + std::to_string(copies_count_limit) +
                                     " files and directories; move it into the project");
    }

    void copy_file(const HostFile &file, FdRef into, const std::string &name)
    {
        if (!file.fd) refuse_copy(*named_, file.problem);
        count();
        if (file.facts.size > copies_size() - size_)
            refuse_copy(*named_, "with it, your arguments name more than " + std::to_string(copies_size_limit >> 20U) +
                                     " MiB; move it into the project");
        const std::string content = read_whole(file.fd, copies_size() - size_, escape_for_display(*named_));
        size_ += content.size();
        const mode_t mode = (file.facts.mode & 0111U) != 0 ? 0555 : 0444;
        const UniqueFd copy =
            open_or_throw("copying " + escape_for_display(*named_), into, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        write_whole(copy, content, "a copy of " + escape_for_display(*named_));
        if (fchmod(copy.get(), mode) != 0) throw_errno("copying " + escape_for_display(*named_));
    }

    void copy_tree(const UserPlacePtr &place, FdRef above, const std::string &name, int depth)
    {
        if (depth > copied_levels) refuse_copy(*named_, "its directories are nested too deep");
        if (is_kernels(place->fd)) refuse_copy(*named_, "the kernel makes that directory");
        DirectoryStream stream(open_to_list(*place));
        if (!stream) refuse_copy(*named_, SystemFailure(errno, "opening").what());
        const UniqueFd directory = make_directory(above, name);
        while (const dirent *entry = stream.next())
            copy_entry(place, directory, entry->d_name, depth);
        if (errno != 0) refuse_copy(*named_, SystemFailure(errno, "reading").what());
    }

    void copy_entry(const UserPlacePtr &place, FdRef into, const std::string &name, int depth)
    {
        const std::string target = read_link(place->fd, name);
        if (stays_in_copy(target, depth)) {
            count();
            if (symlinkat(target.c_str(), into.get(), name.c_str()) != 0) throw_errno("copying " + escape_for_display(*named_));
            return;
        }
        const UserPlacePtr inner = follow(place, name);
        if (!inner) return;
        if (S_ISDIR(inner->facts.st_mode)) return copy_tree(inner, into, name, depth + 1);
        if (!S_ISREG(inner->facts.st_mode)) return leave_out(place->path + "/" + name, no_regular_file);
        copy_file(open_host_file(*inner), into, name);
    }

    // None for what is left out: a symlink that leads out of where agents write, a symlink to nothing, or an entry that is gone.
    UserPlacePtr follow(const UserPlacePtr &place, const std::string &name)
    {
        try {
            return paths_.follow(place, name);
        } catch (const Failure &refusal) {
            leave_out(place->path + "/" + name, refusal.what());
            return nullptr;
        }
    }

    void leave_out(const std::string &path, const std::string &why)
    {
        if (notices_.size() + 1 < HandedFiles::handed_notices_limit)
            notices_.push_back(escape_for_display(path) + " is not copied for the agent: " + why);
    }

    const UserPaths &paths_;
    FdRef copies_;
    const std::string *named_ = nullptr;
    std::size_t size_ = 0;
    std::size_t count_ = 0;
    std::vector<std::string> notices_;
};

// Whether the kernel makes the path for a process. This process does not have the shell's descriptors (`<(…)`), and /proc shows it root's
// processes.
bool is_of_processes(const std::string &path)
{
    return is_within(path, "/proc") || is_within(path, "/dev/fd");
}

Handed hand_one_over(const UserPaths &paths, const ArgumentFile &file, std::size_t number, const ShownPlaces &shown, Copying &copying,
                     std::vector<std::string> &notices)
{
    const bool seen = is_there_inside(shown, file.path);
    if (file.as == NamedAs::place) {
        if (seen || is_within(file.path, "/tmp")) return Handed::shown;
        refuse_copy(file.path,
                    "the agent would write there, which it cannot do outside the project; name a directory of the project, or leave "
                    "the option out, and sessions are kept in the agent's home");
    }
    if (is_of_processes(file.path))
        refuse_copy(file.path, "it belongs to a process outside the sandbox; pass it on standard input, or write it to a file first");
    try {
        const UserPlacePtr place = paths.follow(file.path);
        if (seen && is_there_inside(shown, place->path)) return Handed::shown;
        const bool is_directory = S_ISDIR(place->facts.st_mode);
        if (is_directory && file.as == NamedAs::text) return Handed::left;
        if (is_directory && file.as != NamedAs::tree)
            refuse_copy(file.path, "it is a directory; move it into the project, or name its files");
        if (file.as == NamedAs::written)
            refuse_copy(file.path, "the agent would write to it, which it cannot do outside the project; --fork continues with a copy");
        copying.add(number, file.path, place);
        return Handed::copied;
    } catch (const NotFollowed &refusal) {
        if (!refusal.leads_out() && (seen || file.as == NamedAs::text)) return Handed::left; // e.g. it does not exist
        if (!seen) refuse_copy(file.path, refusal.what());
        notices.push_back(escape_for_display(file.path) + " of your arguments is not handed to the agent: " + refusal.what());
        return Handed::left; // as far as the session sees it
    } catch (const SystemFailure &failure) {
        const int problem = failure.error_number();
        if (seen || problem == ENOENT || problem == ENOTDIR || file.as == NamedAs::text) return Handed::left;
        refuse_copy(file.path, failure.what());
    }
}

} // namespace

HandedFiles copy_named_files(const UserPaths &paths, const std::vector<ArgumentFile> &files, const ShownPlaces &shown, FdRef copies)
{
    HandedFiles handed;
    std::vector<std::string> notices;
    Copying copying(paths, copies);
    for (std::size_t index = 0; index < files.size(); ++index)
        handed.states += static_cast<char>(hand_one_over(paths, files[index], index + 1, shown, copying, notices));
    for (const auto &more : {notices, copying.notices()})
        for (const auto &notice : more)
            if (handed.notices.size() < HandedFiles::handed_notices_limit) handed.notices.push_back(notice);
    return handed;
}

} // namespace pi_agent
