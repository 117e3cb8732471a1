// Walks the shown tree, the nearest repository first, and words the notice.
#include "wrapper/aftermath.hpp"

#include "common/record/record_event.hpp"

#include <dirent.h>
#include <nlohmann/json.hpp>

#include <climits>
#include <filesystem>

namespace pi_agent {

namespace {

// Below these lie other people's packages: nobody opens an editor there, and many bring its files along.
constexpr std::string_view others_packages = "node_modules site-packages dist-packages vendor";
constexpr std::size_t named_limit = 3; // of the directories that were not looked at

class Look {
public:
    Look(const LookPlan &plan, const ShownTree &tree, bool is_first_look)
        : plan_(plan), tree_(tree), first_look_(is_first_look), marker_(tree, snapshot_), repositories_(marker_, plan.home)
    {
    }

    Snapshot run()
    {
        marker_.begin_first_places();
        look_at_first_places();
        marker_.end_first_places();
        snapshot_.has_first_places = !tree_.budget().is_spent();
        walk(plan_.repository);
        snapshot_.has_project = snapshot_.not_looked_at.empty() && !tree_.budget().is_spent();
        if (!plan_.repository.empty()) walk("");
        snapshot_.is_complete = snapshot_.not_looked_at.empty() && !tree_.budget().is_spent();
        for (; !places_.empty(); places_.pop_front())
            leave_out(places_.front().path);
        if (tree_.budget().is_spent())
            snapshot_.left_out_because =
                "at most " + std::to_string(aftermath_seconds) + " seconds and " + std::to_string(aftermath_entries) + " entries";
        return std::move(snapshot_);
    }

private:
    struct Place {
        std::string path;
        bool in_packages; // only git's doors count
        bool fresh;       // the directory above was changed after the start
    };

    void walk(const std::string &from)
    {
        places_.push_back(Place{from, false, false});
        while (!places_.empty() && !tree_.budget().is_spent())
            visit();
    }

    void look_at_first_places()
    {
        const std::string git = join_path(plan_.repository, ".git");
        if (const auto facts = tree_.look(git, Links::refuse))
            repositories_.worktree(plan_.repository, static_cast<unsigned char>(IFTODT(facts->st_mode)));
        for (const auto &directory : plan_.git_directories)
            look_elsewhere(directory);
        for (const auto &entry : plan_.path_entries)
            if (const auto directory = tree_.below(entry)) marker_.programs(*directory, Appearing::counts);
        programs_of_project(plan_.repository);
    }

    void look_elsewhere(const std::string &directory)
    {
        const auto tree = ShownTree::open(directory, tree_.budget());
        if (!tree) return;
        Marker marker(*tree, snapshot_);
        marker.begin_first_places();
        RepositoryDoors(marker, plan_.home).git_directory("");
    }

    void programs_of_project(const std::string &directory)
    {
        for (const char *name : {"bin", "node_modules/.bin", ".venv/bin", "venv/bin"})
            marker_.programs(join_path(directory, name), Appearing::counts_in_known_directory);
    }

    void visit()
    {
        Place place = std::move(places_.front());
        places_.pop_front();
        if (place.path.size() >= PATH_MAX) {
            snapshot_.left_out_because = "a path of more than " + std::to_string(PATH_MAX) + " bytes cannot be opened";
            return leave_out(place.path);
        }
        const Listing listing = tree_.list(place.path, Links::refuse);
        if (listing.found == Listing::Found::nothing && tree_.budget().is_spent()) return leave_out(place.path);
        if (listing.found == Listing::Found::unreadable) return marker_.unreadable(place.path, listing.facts);
        if (listing.found != Listing::Found::listed) return;
        const bool fresh = first_look_ && is_later(listing.facts.st_ctim, plan_.start);
        if (fresh && place.fresh) return; // perhaps moved here by the agent, with everything in it

        const auto type_of = [&](std::string_view name) { // DT_UNKNOWN: of no entry
            const auto found =
                std::find_if(listing.entries.begin(), listing.entries.end(), [&](const auto &one) { return one.name == name; });
            return found == listing.entries.end() ? static_cast<unsigned char>(DT_UNKNOWN) : found->type;
        };
        const auto has = [&](std::string_view name) { return type_of(name) != DT_UNKNOWN; };
        if (has(".git")) repositories_.worktree(place.path, type_of(".git"));
        if (has(".git") || place.path.empty()) programs_of_project(place.path);
        if (has("HEAD") && ((has("objects") && has("refs")) || has("commondir"))) return repositories_.embedded(place.path);
        for (const auto &entry : listing.entries)
            take_entry(place, entry, fresh);
        if (tree_.budget().is_spent()) leave_out(place.path);
    }

    void take_entry(const Place &place, const DirectoryEntry &entry, bool fresh)
    {
        if (!place.in_packages) mark_file_doors(marker_, place.path, entry.name);
        if (entry.type != DT_DIR || entry.name == ".git") return;
        const std::string path = join_path(place.path, entry.name);
        if (path == plan_.repository) return; // was looked at first
        if (entry.name == "node_modules") marker_.programs(path + "/.bin", Appearing::counts_in_known_directory);
        if (!place.in_packages && (entry.name == ".venv" || entry.name == "venv"))
            marker_.programs(path + "/bin", Appearing::counts_in_known_directory);
        places_.push_back(Place{path, place.in_packages || has_word(others_packages, entry.name), fresh});
    }

    void leave_out(const std::string &path)
    {
        if (snapshot_.not_looked_at.size() < named_limit)
            snapshot_.not_looked_at.push_back(tree_.absolute(path));
        else
            ++snapshot_.more_not_looked_at;
    }

    const LookPlan &plan_;
    const ShownTree &tree_;
    bool first_look_;
    Snapshot snapshot_;
    Marker marker_;
    RepositoryDoors repositories_;
    std::deque<Place> places_;
};

// The nearest directory from `cwd` up to and including `root` that has an entry `.git`.
std::optional<std::string> nearest_repository(const std::string &root, const std::string &cwd)
{
    for (std::string path = cwd; path.size() >= root.size(); path.resize(path.rfind('/'))) {
        struct stat facts {};
        if (lstat((path + "/.git").c_str(), &facts) == 0) return path;
    }
    return std::nullopt;
}

std::string real_path(const std::filesystem::path &path)
{
    std::error_code unknown;
    return std::filesystem::canonical(path, unknown).string();
}

// The first line of a small regular file.
std::string first_line(const std::string &directory, const std::string &name)
{
    Budget budget(10, in_seconds(1), [] { return false; });
    const auto tree = ShownTree::open(directory, budget);
    const std::string text = tree ? tree->read(name, PATH_MAX).value_or("") : "";
    return text.substr(0, text.find('\n'));
}

// What the `.git` file of a repository names, or the directory that it shares with its main repository, if that is outside `root`.
// It may not be shown to the session; then nothing changes there.
std::optional<std::string> git_directory_elsewhere(const std::string &repository, const std::string &root)
{
    constexpr std::string_view begin = "gitdir: ";
    const std::string line = first_line(repository, ".git");
    if (!line.starts_with(begin)) return std::nullopt;
    const std::string own = real_path(std::filesystem::path(repository) / line.substr(begin.size()));
    const std::string common = own.empty() ? "" : first_line(own, "commondir");
    const std::string real = common.empty() ? own : real_path(std::filesystem::path(own) / common);
    return real.empty() || is_within(real, root) ? std::nullopt : std::optional(real);
}

// The entries in `root`, or that would be there if they existed.
std::vector<std::string> path_entries_within(const std::string &path, const std::string &root, const std::string &cwd)
{
    std::vector<std::string> entries;
    const std::string ended = path + ":"; // the last entry may be empty
    for (const auto entry : split(ended, ':')) {
        std::error_code unknown;
        // An empty one is the working directory.
        const std::filesystem::path absolute = std::filesystem::path(cwd) / entry;
        const std::string real = normal_path(std::filesystem::weakly_canonical(absolute, unknown).string());
        if (!unknown && is_within(real, root)) entries.push_back(real);
    }
    return entries;
}

constexpr std::size_t line_limit = 10;              // findings
constexpr std::size_t name_limit = 200;             // bytes of a name in a line
constexpr std::size_t recorded_limit = 300;         // findings
constexpr std::size_t recorded_bytes = 64UL * 1024; // of paths: an entry is one datagram
// What the journal finds these entries by; docs/concepts/aftermath.md tells it.
constexpr const char *message_id = "52af8656c170442e831913a168dda90c";

// The end says more than the beginning.
std::string shortened(const std::string &text)
{
    if (text.size() <= name_limit) return text;
    std::size_t begin = text.size() - name_limit;
    while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U)
        ++begin; // not within a character
    return "..." + text.substr(begin);
}

std::string shown_path(const std::string &path, const std::string &cwd)
{
    const bool below = path != cwd && cwd != "/" && is_within(path, cwd);
    return shortened(escape_for_display(below ? path.substr(cwd.size() + 1) : path));
}

std::string change_of(const Finding &finding)
{
    return finding.appeared ? "appeared" : "changed";
}

std::string left_out(const Snapshot &after, const std::string &cwd)
{
    std::string text =
        "pi: the search for files that run code outside the sandbox was not complete (" + after.left_out_because + "); not searched: ";
    for (std::size_t index = 0; index < after.not_looked_at.size(); ++index)
        text += (index == 0 ? "" : ", ") + shown_path(after.not_looked_at[index], cwd);
    if (after.more_not_looked_at > 0) text += " and " + std::to_string(after.more_not_looked_at) + " more directories";
    return text + "\n";
}

} // namespace

// Walking the shown tree, the nearest repository first and then level by level.

Snapshot look_at_doors(const LookPlan &plan, Budget &budget, bool is_first_look)
{
    if (const auto tree = ShownTree::open(plan.root, budget); tree) return Look(plan, *tree, is_first_look).run();
    Snapshot nothing;
    nothing.not_looked_at.push_back(plan.root);
    nothing.left_out_because = "it cannot be opened";
    return nothing;
}

LookPlan plan_look(const std::string &root, const std::string &cwd, const std::string &home, const std::string &path, ProjectScope scope)
{
    LookPlan plan{root, "", {}, {}, home, {}};
    const std::string repository = nearest_repository(root, cwd).value_or(cwd);
    if (scope == ProjectScope::project)
        plan.root = repository;
    else if (repository.size() > root.size())
        plan.repository = repository.substr(root.size() + 1);
    if (auto elsewhere = git_directory_elsewhere(repository, plan.root)) plan.git_directories.push_back(std::move(*elsewhere));
    plan.path_entries = path_entries_within(path, plan.root, cwd);
    return plan;
}

// Wording of the notice, and its entry in the journal.

std::string aftermath_notice(const std::vector<Finding> &findings, const Snapshot &after, const std::string &cwd,
                             const std::string &recorded_session)
{
    std::string text;
    if (!findings.empty()) text = "pi: Review before you go on: this session added or changed files that run code outside the sandbox:\n";
    const std::size_t count = std::min(findings.size(), line_limit);
    for (std::size_t index = 0; index < count; ++index) {
        const Finding &finding = findings[index];
        text +=
            "pi:   " + shown_path(finding.path, cwd) + ": " + shortened(escape_for_display(finding.what)) + " " + change_of(finding) + "\n";
    }
    if (findings.size() > count)
        text += "pi:   and " + std::to_string(findings.size() - count) + " more" +
                (recorded_session.empty() ? "" : ": journalctl -o json PI_AGENT_SESSION=" + recorded_session) + "\n";
    if (!findings.empty() && recorded_session.empty()) text += "pi: the journal did not record them\n";
    if (!findings.empty()) text += "pi: Until then use neither git nor an editor nor these programs there.\n";
    if (!after.is_complete) text += left_out(after, cwd);
    return text;
}

std::string links_notice(const std::set<std::string> &before, const std::set<std::string> &after)
{
    std::string text;
    std::size_t count = 0;
    for (const auto &link : after)
        if (!before.contains(link) && ++count <= line_limit) text += "pi:   " + link + "\n";
    if (count == 0) return "";
    if (count > line_limit) text += "pi:   and " + std::to_string(count - line_limit) + " more\n";
    return "pi: this session left links that lead out of your projects, in files that pi reads as you; pi does not follow them:\n" + text;
}

std::string aftermath_json(const std::vector<Finding> &findings)
{
    nlohmann::json list = nlohmann::json::array();
    std::size_t size = 0;
    for (std::size_t index = 0; index < std::min(findings.size(), recorded_limit) && size < recorded_bytes; ++index) {
        const std::string path = escape_for_display(findings[index].path);
        size += path.size();
        list.push_back({{"path", path}, {"kind", escape_for_display(findings[index].what)}, {"change", change_of(findings[index])}});
    }
    return list.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool record_aftermath(const std::vector<Finding> &findings, const std::string &session)
{
    const std::string message =
        "session " + session + " left " + std::to_string(findings.size()) + " files that run code outside the sandbox";
    return send_to_journal({{"MESSAGE", message},
                            {"MESSAGE_ID", message_id},
                            {"PRIORITY", "5"},
                            {"SYSLOG_IDENTIFIER", "pi"},
                            {"PI_AGENT_SESSION", session},
                            {"PI_AGENT_AFTERMATH", aftermath_json(findings)}},
                           journal_patience_milliseconds);
}

} // namespace pi_agent
