// Plans what an undo does, and does it by descriptor: beneath the root, through no link, with a temporary file and a rename.
#include "common/undo/restore.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

constexpr mode_t mode_bits = 0777; // no set-id bit comes back: an agent could have made the file that has it

bool is_named(const std::vector<std::string> &named, const std::string &path, bool exactly)
{
    return std::any_of(named.begin(), named.end(), [&](const std::string &one) {
        return one == path || (!exactly && (one.empty() || (path.starts_with(one) && path[one.size()] == '/')));
    });
}

// Other commits may need them by now.
bool is_object(const std::string &path)
{
    return ("/" + path).find("/.git/objects/") != std::string::npos;
}

class TakingBack {
public:
    TakingBack(const Checkpoint &checkpoint, FdRef root) : checkpoint_(checkpoint), root_(root) {}

    std::vector<std::string> run(const UndoPlan &plan)
    {
        const auto is_kept = [](const TreeChange &step) {
            return step.kind == TreeChangeKind::mode || step.kind == TreeChangeKind::renamed;
        };
        const auto is_in_the_way = [&](const TreeChange &step) {
            return step.now && !is_kept(step) && (!step.before || (step.before->mode & S_IFMT) != (step.now->mode & S_IFMT));
        };
        // Paths are sorted, so that what is in a directory comes after it.
        for (const auto &step : plan.steps)
            if (is_in_the_way(step) && !S_ISDIR(step.now->mode)) attempt(step, [&] { remove(step); });
        for (const auto &step : plan.steps)
            if (step.before && !is_kept(step) && S_ISDIR(step.before->mode)) attempt(step, [&] { make_directory(step); });
        for (const auto &step : plan.steps)
            if (step.kind == TreeChangeKind::renamed) attempt(step, [&] { rename_back(step); });
        for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step)
            if (is_in_the_way(*step) && S_ISDIR(step->now->mode)) attempt(*step, [&] { remove(*step); });
        for (const auto &step : plan.steps)
            if (step.before && !is_kept(step) && !S_ISDIR(step.before->mode))
                attempt(step, [&] { put_back(*step.before, open_unchanged(step)); });
        for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) // all in it is there, so a directory may close
            if (step->before && (S_ISDIR(step->before->mode) || is_kept(*step))) attempt(*step, [&] { set_mode(*step); });
        return std::move(failures_);
    }

private:
    template <typename Action>
    void attempt(const TreeChange &step, const Action &action)
    {
        try {
            action();
        } catch (const Failure &failure) {
            failures_.push_back(escape_for_display(step.path) + ": " + failure.what());
        }
    }

    struct Place {
        UniqueFd parent;
        std::string name;
    };
    [[nodiscard]] Place open_place(const std::string &path) const
    {
        auto [above, name] = split_last(path);
        UniqueFd parent = open_in_tree(root_, above, O_RDONLY | O_DIRECTORY);
        if (!parent) throw_errno("opening its directory");
        return {std::move(parent), name};
    }

    // The same, while that is what the plan knows: it was made before the user said yes.
    [[nodiscard]] Place open_unchanged(const TreeChange &change) const
    {
        Place place = open_place(change.path);
        struct stat facts {};
        if (!change.now || fstatat(place.parent.get(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return place;
        const bool is_same = facts.st_ino == change.now->inode &&
                             (S_ISDIR(facts.st_mode) || (file_time(facts.st_mtim) == change.now->modified &&
                                                         static_cast<std::uint64_t>(facts.st_size) == change.now->size));
        if (!is_same && change.kind != TreeChangeKind::deleted && defence_is_on("undo-changed-since"))
            throw Failure(ExitStatus::limit, "it changed meanwhile");
        return place;
    }

    void remove(const TreeChange &change) const
    {
        const auto [parent, name] = open_unchanged(change);
        if (unlinkat(parent.get(), name.c_str(), S_ISDIR(change.now->mode) ? AT_REMOVEDIR : 0) != 0) require_gone("removing it");
    }

    void make_directory(const TreeChange &change) const
    {
        const auto [parent, name] = open_place(change.path);
        if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("making it");
    }

    void rename_back(const TreeChange &change) const
    {
        const auto [parent, name] = open_unchanged(change);
        const auto [former, former_name] = open_place(change.from);
        if (renameat2(parent.get(), name.c_str(), former.get(), former_name.c_str(), RENAME_NOREPLACE) != 0) throw_errno("renaming it");
        // Whoever wrote into it could give it its old time.
        if (change.before->kept == Kept::copied && !by_copies(checkpoint_, root_)(*change.before, *change.before))
            put_back(*change.before, open_place(change.from));
    }

    void put_back(const TreeEntry &entry, const Place &place) const
    {
        const auto &[parent, name] = place;
        // A name of its own for each file, so that the next undo replaces what a killed one left.
        const std::string temporary = ".pi-agent-undo-" + std::to_string(entry.inode);
        unlinkat(parent.get(), temporary.c_str(), 0);
        const bool is_made = S_ISLNK(entry.mode) ? symlinkat(entry.target.c_str(), parent.get(), temporary.c_str()) == 0
                                                 : make_file(parent, temporary, entry);
        if (is_made && renameat(parent.get(), temporary.c_str(), parent.get(), name.c_str()) == 0) return;
        const int reason = errno;
        unlinkat(parent.get(), temporary.c_str(), 0);
        throw SystemFailure(reason, "putting it back");
    }

    [[nodiscard]] bool make_file(FdRef parent, const std::string &temporary, const TreeEntry &entry) const
    {
        const UniqueFd copy = checkpoint_.open_copy(entry);
        const UniqueFd file = open_at(parent, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        const std::array<timespec, 2> times = {timespec{0, UTIME_OMIT},
                                               timespec{entry.modified / 1'000'000'000, entry.modified % 1'000'000'000}};
        return file && copy_content(copy, file, [] { return false; }) && futimens(file.get(), times.data()) == 0 &&
               fchmod(file.get(), entry.mode & mode_bits) == 0 && fdatasync(file.get()) == 0;
    }

    void set_mode(const TreeChange &step) const
    {
        const TreeEntry &entry = *step.before;
        const UniqueFd file = open_in_tree(root_, entry.path, O_PATH);
        struct stat facts {};
        if (!file || fstat(file.get(), &facts) != 0) throw_errno("opening it");
        const bool is_other = step.kind == TreeChangeKind::mode && facts.st_ino != step.now->inode;
        if (is_other || (facts.st_mode & S_IFMT) != (entry.mode & S_IFMT)) throw Failure(ExitStatus::limit, "it changed meanwhile");
        const mode_t mode = entry.mode & (S_ISDIR(entry.mode) ? 07777U : mode_bits);
        // An open path has no fchmod(2); this leads to that very file.
        if (!S_ISLNK(facts.st_mode) && chmod(("/proc/self/fd/" + std::to_string(file.get())).c_str(), mode) != 0)
            throw_errno("setting its mode");
    }

    const Checkpoint &checkpoint_;
    FdRef root_;
    std::vector<std::string> failures_;
};

} // namespace

bool names_git(const std::vector<std::string> &named)
{
    return std::any_of(named.begin(), named.end(),
                       [](const std::string &one) { return ("/" + one + "/").find("/.git/") != std::string::npos; });
}

bool is_selected(const std::vector<std::string> &named, const TreeChange &change)
{
    return named.empty() || is_named(named, change.path, false) || (!change.from.empty() && is_named(named, change.from, false));
}

UndoPlan plan_undo(const std::vector<TreeChange> &changes, const std::vector<std::string> &named)
{
    UndoPlan plan;
    std::set<std::string> above; // directories without which what is selected cannot come back
    for (const auto &change : changes)
        if (is_selected(named, change) && change.before)
            for (auto path = split_last(change.before->path).first; !path.empty() && above.insert(path).second;)
                path = split_last(path).first;
    for (const auto &change : changes) {
        const bool is_above = change.kind == TreeChangeKind::deleted && above.contains(change.path);
        if (!is_above && !is_selected(named, change)) continue;
        const bool is_meant = is_above || is_named(named, change.path, true) || !defence_is_on("undo-conflicts");
        const bool is_new = !change.before;
        const bool needs_copy = change.before && !S_ISDIR(change.before->mode) && !S_ISLNK(change.before->mode) &&
                                (change.kind == TreeChangeKind::changed || change.kind == TreeChangeKind::deleted);
        if (change.is_of_git() && (!names_git(named) || (is_new && is_object(change.path))))
            plan.of_git.push_back(change);
        else if (needs_copy && change.before->kept != Kept::copied && (is_meant || !change.is_later))
            plan.without.push_back(change);
        else if ((change.is_later || change.is_uncertain) && !is_meant)
            plan.conflicts.push_back(change);
        else
            plan.steps.push_back(change);
    }
    return plan;
}

std::vector<std::string> take_back(const UndoPlan &plan, const Checkpoint &checkpoint, FdRef root)
{
    return TakingBack(checkpoint, root).run(plan);
}

} // namespace pi_agent
