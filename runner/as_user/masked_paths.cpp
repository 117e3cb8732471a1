// Searching a project for what is masked, within bounds.
#include "runner/as_user/protected_paths.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t links_named = 3;

class MaskSearch {
public:
    // `shown`: the part of the tree that a session shows. `all`: the rest is searched as well.
    MaskSearch(const GuardedTree &tree, const std::vector<PolicyPath> &patterns, std::string shown, bool all)
        : tree_(tree), patterns_(patterns), shown_(std::move(shown)), all_(all && !shown_.empty()), mount_(mount_id(tree.top)),
          deadline_(in_seconds(mask_search_seconds))
    {
    }

    MaskedPaths run()
    {
        walk({shown_}, Pass::patterns);
        if (all_) walk({""}, Pass::patterns);
        if (defence_is_on("mask-other-names")) mask_other_names();
        for (const auto &closed : closed_)
            found_.notices.push_back("masked as a whole, because you may not search it: " +
                                     escape_for_display(join_path(tree_.path, closed)));
        found_.paths.insert(found_.paths.end(), closed_.begin(), closed_.end());
        if (links_ > links_named) found_.notices.push_back("not masked: " + std::to_string(links_ - links_named) + " more symbolic links");
        drop_what_lies_in_another();
        for (auto &path : found_.paths)
            path = below_shown(path);
        return std::move(found_);
    }

private:
    enum class Pass { patterns, inside_masked, other_names };

    struct File {
        nlink_t names = 0;
        std::vector<std::string> seen; // of these
    };

    void walk(std::vector<std::string> ahead, Pass pass)
    {
        pass_ = pass;
        while (!ahead.empty()) {
            const std::string path = std::move(ahead.back());
            ahead.pop_back();
            look_into(path, ahead);
        }
    }

    // A file can be read by each of its names (hard links), also by one in `.git`. Most projects have no such names, and are walked once.
    void mask_other_names()
    {
        const std::size_t masked = found_.paths.size();
        walk(directories_, Pass::inside_masked);
        if (!linked_.empty() || !unseen_.empty()) walk({shown_}, Pass::other_names);
        tell_from(masked, "masked too, because it is another name (a hard link) of a masked file: ");
        const std::size_t known = found_.paths.size();
        mask_names_of_unseen();
        tell_from(known, "masked too, because it has another name (a hard link), perhaps in a directory that you may not search: ");
    }

    void tell_from(std::size_t first, const char *what)
    {
        for (std::size_t index = first; index < std::min(found_.paths.size(), first + links_named); ++index)
            found_.notices.push_back(what + escape_for_display(join_path(tree_.path, found_.paths[index])));
    }

    [[noreturn]] void give_up(const std::string &why) const
    {
        throw Failure(FailureKind::too_large, "limit: " + escape_for_display(tree_.path) +
                                                  " cannot be searched for files to mask (projects.mask): " + why +
                                                  "; start in a smaller root, or ask the administrator to show only the repository "
                                                  "(projects.scope: project) or to mask fewer files");
    }

    [[nodiscard]] bool is_shown(const std::string &path) const { return shown_.empty() || is_within(path, shown_); }
    [[nodiscard]] std::string below_shown(const std::string &path) const { return shown_.empty() ? path : path.substr(shown_.size() + 1); }

    [[nodiscard]] bool fits(const std::string &path) const
    {
        const bool from_both = !shown_.empty() && is_shown(path);
        return std::any_of(patterns_.begin(), patterns_.end(), [&](const PolicyPath &one) {
            return ((!from_both || defence_is_on("mask-from-root")) && is_masked_by(one.path, path)) ||
                   (from_both && is_masked_by(one.path, below_shown(path)));
        });
    }

    void look_into(const std::string &path, std::vector<std::string> &ahead)
    {
        UniqueFd directory = find_beneath(tree_.top, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
        if (!directory) return pass_over(path);
        if (mount_id(directory) != mount_) return; // another file system, which the agent is not shown
        DirectoryStream stream(std::move(directory));
        if (!stream) throw_errno("searching what to mask");
        while (const dirent *entry = stream.next()) {
            const std::string name = entry->d_name;
            if (name == ".git" && pass_ == Pass::patterns) continue;
            if (++entries_ > mask_search_limit) give_up("it has more than " + std::to_string(mask_search_limit) + " entries");
            if (pass_ == Pass::patterns)
                judge(stream.fd(), path, name, entry->d_type, ahead);
            else
                judge_name(stream.fd(), path, name, ahead);
        }
        if (errno != 0) give_up(escape_for_display(path) + " cannot be listed (" + SystemFailure(errno, "readdir").what() + ")");
        if (Clock::now() > deadline_) give_up("the search takes longer than " + std::to_string(mask_search_seconds) + " seconds");
    }

    // Call it after a failed look (errno). A path that still exists could be one to mask, or another name of a masked file.
    void pass_over(const std::string &path)
    {
        if (errno == EACCES) return close(path);
        if (errno != ENOENT && errno != ENOTDIR)
            give_up(escape_for_display(path) + " cannot be examined (" + SystemFailure(errno, "look").what() + ")");
    }

    // An owner may change permissions, and inside the agent has the owner's rights: what it closed in one session, it would open in the
    // next. What somebody else closed stays closed.
    void close(const std::string &path)
    {
        const bool lets_pass = find_beneath(tree_.top, path, O_PATH).is_open();
        if (!lets_pass && errno != EACCES) return pass_over(path);
        const std::string closed = lets_pass ? path : split_last(path).first; // it can be read, but not entered
        if (!is_own_directory(tree_, closed) || !defence_is_on("mask-closed")) return;
        if (closed.empty()) give_up("you may not enter it");
        if (is_within(shown_, closed)) give_up("you may not enter " + escape_for_display(join_path(tree_.path, closed)));
        if (pass_ != Pass::other_names) unseen_.insert(closed);
        if (pass_ == Pass::inside_masked || !is_shown(closed)) return;
        if (closed_.size() == guard_limit) give_up("you may not enter more than " + std::to_string(guard_limit) + " of its directories");
        closed_.insert(closed);
    }

    // A closed directory could hold something to mask, and a name of a masked file that nobody can see.
    void mask_names_of_unseen()
    {
        for (const auto &[inode, file] : with_several_names_) {
            if (file.seen.size() >= file.names) continue;
            for (const auto &path : file.seen) {
                if (found_.paths.size() == guard_limit)
                    give_up("you may not search " + escape_for_display(*unseen_.begin()) + ", and more than " +
                            std::to_string(guard_limit) +
                            " files have another name (a hard link) that may be there; give yourself permission to search it");
                add(path);
            }
        }
    }

    void drop_what_lies_in_another()
    {
        std::vector<std::string> &paths = found_.paths;
        std::sort(paths.begin(), paths.end());
        std::vector<std::string> kept;
        for (auto &path : paths)
            if (std::none_of(kept.begin(), kept.end(), [&](const std::string &above) { return is_within(path, above); }))
                kept.push_back(std::move(path));
        paths = std::move(kept);
    }

    void judge(FdRef directory, const std::string &above, const std::string &name, unsigned char type, std::vector<std::string> &ahead)
    {
        const std::string path = join_path(above, name);
        if (path == shown_) return; // was searched first
        const bool masked = fits(path);
        if (type == DT_UNKNOWN) {
            struct stat facts {};
            if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return pass_over(path);
            type = S_ISDIR(facts.st_mode) ? DT_DIR : S_ISLNK(facts.st_mode) ? DT_LNK : DT_REG;
        }
        if (masked && type == DT_LNK) {
            if (is_shown(path) && ++links_ <= links_named)
                found_.notices.push_back("not masked, because it is a symlink: " + escape_for_display(join_path(tree_.path, path)));
        } else if (masked) {
            add(path);
            if (type == DT_DIR) directories_.push_back(path);
            struct stat facts {};
            if (type == DT_DIR) return;
            if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return pass_over(path);
            remember_names(facts);
        } else if (type == DT_DIR) {
            ahead.push_back(path);
        }
    }

    void add(const std::string &path)
    {
        if (!is_shown(path)) return;
        if (found_.paths.size() == guard_limit) give_up("it has more than " + std::to_string(guard_limit) + " entries that match");
        found_.paths.push_back(path);
    }

    void remember_names(const struct stat &facts)
    {
        if (S_ISREG(facts.st_mode) && facts.st_nlink > 1) linked_.insert({facts.st_dev, facts.st_ino});
    }

    void judge_name(FdRef directory, const std::string &above, const std::string &name, std::vector<std::string> &ahead)
    {
        const std::string path = join_path(above, name);
        struct stat facts {};
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return pass_over(path);
        if (S_ISDIR(facts.st_mode)) {
            if (pass_ == Pass::inside_masked || !is_masked(path)) ahead.push_back(path);
        } else if (pass_ == Pass::inside_masked) {
            remember_names(facts);
        } else if (linked_.contains({facts.st_dev, facts.st_ino})) {
            if (!is_masked(path)) add(path);
        } else if (S_ISREG(facts.st_mode) && facts.st_nlink > 1 && !unseen_.empty()) {
            File &file = with_several_names_[{facts.st_dev, facts.st_ino}];
            file.names = facts.st_nlink;
            file.seen.push_back(path);
        }
    }

    [[nodiscard]] bool is_masked(const std::string &path) const
    {
        return std::find(found_.paths.begin(), found_.paths.end(), path) != found_.paths.end();
    }

    const GuardedTree &tree_;
    const std::vector<PolicyPath> &patterns_;
    std::string shown_; // relative to the tree, as all paths here
    bool all_;
    std::uint64_t mount_;
    Deadline deadline_;
    std::size_t entries_ = 0;
    std::size_t links_ = 0;
    Pass pass_ = Pass::patterns;
    std::vector<std::string> directories_;     // that are masked
    std::set<std::pair<dev_t, ino_t>> linked_; // masked files with several names
    std::set<std::string> closed_;             // masked as a whole
    std::set<std::string> unseen_;             // closed, and what is in it or below could be masked by itself
    std::map<std::pair<dev_t, ino_t>, File> with_several_names_;
    MaskedPaths found_;
};

} // namespace

MaskedPaths find_masked(const GuardedTree &tree, const std::vector<PolicyPath> &patterns)
{
    return patterns.empty() ? MaskedPaths{} : MaskSearch(tree, patterns, "", false).run();
}

MaskedPaths find_masked(const GuardedRoot &part, bool all, const std::vector<PolicyPath> &patterns)
{
    return patterns.empty() ? MaskedPaths{} : MaskSearch(part.root, patterns, part.inside, all && defence_is_on("mask-whole-root")).run();
}

} // namespace pi_agent
