// Shows what a session changed, and takes it back: as the user, whose files both are.
#include "admin/undo/undo.hpp"

#include "admin/programs/program.hpp"
#include "admin/sessions/sessions.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/terminal_text.hpp"
#include "common/undo/restore.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

namespace pi_agent {

namespace {

constexpr std::size_t shown_limit = 8UL << 20U; // bytes of a file whose lines are compared
constexpr const char *lister = "pi-agentctl history";

// A checkpoint, its tree as it is now, and what is different.
struct Compared {
    UndoStore store;
    Checkpoint checkpoint;
    UniqueFd root;
    TreeLook before;
    std::optional<TreeLook> after;
    std::vector<TreeChange> changes;
};

// The repository, or the directory, in which its session began.
std::string where_it_worked(const CheckpointHead &head)
{
    return head.place.empty() ? head.root : join_path(head.root, head.place);
}

// Without an id the last one that worked here: in another project nobody means to take anything back.
Checkpoint choose_checkpoint(std::vector<Checkpoint> all, const std::optional<std::string> &asked)
{
    const auto id = asked ? choose_session(mapped(all, [](const Checkpoint &one) { return one.id; }), *asked, lister) : "";
    const auto here = asked ? "" : std::filesystem::current_path().string();
    const auto is_sessions = [](const Checkpoint &one) { return one.head.kind == CheckpointKind::session; };
    const auto found = std::find_if(all.begin(), all.end(), [&](const Checkpoint &one) {
        return asked ? one.id == id : is_sessions(one) && are_nested(where_it_worked(one.head), here);
    });
    if (found != all.end()) return std::move(*found);
    std::string elsewhere;
    if (const auto last = std::find_if(all.begin(), all.end(), is_sessions); last != all.end())
        elsewhere = "; the last one worked in " + escape_for_display(where_it_worked(last->head)) + ", and its id is " + short_id(last->id);
    throw NothingToDo("nothing is kept of a session of yours that worked here" + (elsewhere.empty() ? " (projects.undo)" : elsewhere));
}

// What is taken back where no path is named: a session may change all of the root, where its user works on other projects meanwhile.
std::vector<std::string> named_or_place(std::vector<std::string> named, const Checkpoint &checkpoint)
{
    if (named.empty()) named.push_back(checkpoint.head.place);
    return named;
}

TreeLook look_at(FdRef root, FileTime now)
{
    WalkOrder walk;
    walk.entries *= 4; // of what is there since there may be more
    walk.start = now;
    return walk_tree(root, walk);
}

Compared compare_now(const std::optional<std::string> &session)
{
    if (::geteuid() == 0) throw Failure(ExitStatus::usage, "users look at what their own sessions changed; run it without sudo");
    auto store = if_there([] { return std::optional(UndoStore::open(users_undo_directory(Uid(::getuid())))); });
    Checkpoint checkpoint = choose_checkpoint(store ? store->list() : std::vector<Checkpoint>(), session);
    UniqueFd root = open_root_of_tree(checkpoint.head.root);
    TreeLook before = checkpoint.before();
    auto after = checkpoint.after();
    auto changes = compare_trees(before, after ? &*after : nullptr, look_at(root, time_now()), by_copies(checkpoint, root));
    return {std::move(*store), std::move(checkpoint), std::move(root), std::move(before), std::move(after), std::move(changes)};
}

std::uint64_t microseconds(FileTime time)
{
    return static_cast<std::uint64_t>(time / 1000);
}

// Below the root, by its text: the tree may have changed since.
std::vector<std::string> below_root(const std::vector<std::string> &paths, const std::string &root)
{
    std::vector<std::string> below;
    for (const auto &path : paths) {
        const auto absolute = without_trailing_slashes(std::filesystem::absolute(path).lexically_normal().string());
        if (!is_within(absolute, root))
            throw Failure(ExitStatus::usage,
                          escape_for_display(path) + " is not in " + escape_for_display(root) + ", where that session was");
        below.push_back(absolute.size() == root.size() ? "" : absolute.substr(root.size() + 1));
    }
    return below;
}

// Why its former content is gone; "" where it is not.
std::string loss_of(const TreeChange &change)
{
    const bool is_needed = change.before && S_ISREG(change.before->mode) && change.before->kept != Kept::copied;
    if (!is_needed || change.kind == TreeChangeKind::renamed || change.kind == TreeChangeKind::mode) return "";
    return reason_of(change.before->kept);
}

bool is_directory(const TreeChange &change)
{
    return S_ISDIR(change.now ? change.now->mode : change.before->mode);
}

bool is_in(const TreeChange &directory, const TreeChange &change)
{
    return change.path.starts_with(directory.path + "/");
}

std::string line_of(const TreeChange &change)
{
    std::string text = fmt::format("  {:<8} ", to_string(change.kind));
    if (!change.from.empty()) text += escape_for_display(change.from) + " -> ";
    text += escape_for_display(change.path);
    if (is_directory(change)) text += "/";
    if (const auto loss = loss_of(change); !loss.empty()) text += " (not saved: " + loss + ")";
    if (change.is_later) text += " (changed again since the session)";
    return text + "\n";
}

void show_list(const char *head, const std::vector<TreeChange> &changes, std::ostream &out)
{
    if (!changes.empty()) out << head << '\n';
    for (const auto &change : changes)
        out << line_of(change);
}

void show_left_out(const TreeLook &before, std::ostream &out)
{
    for (const auto &path : before.left_out)
        out << "not looked at: " << (path.empty() ? "." : escape_for_display(path)) << '\n';
}

std::map<std::string, std::size_t> not_saved(const TreeLook &before)
{
    std::map<std::string, std::size_t> counts;
    for (const auto &entry : before.entries)
        if (entry.kept != Kept::none && entry.kept != Kept::copied) ++counts[reason_of(entry.kept)];
    return counts;
}

nlohmann::json to_json(const TreeChange &change, const std::string &place)
{
    const auto loss = loss_of(change);
    return {{"change", to_string(change.kind)},
            {"path", escape_for_display(change.path)},
            {"from", text_or_null(escape_for_display(change.from))},
            {"not_saved", text_or_null(loss)},
            {"changed_since", change.is_later},
            {"of_git", change.is_of_git()},
            {"elsewhere", !is_selected({place}, change)}};
}

// --- A difference in git's form.

// What is at one side: of a regular file its content, of a symlink its target.
std::string content_of(const Compared &compared, const std::optional<TreeEntry> &entry, bool is_before)
{
    if (!entry || S_ISDIR(entry->mode)) return "";
    if (S_ISLNK(entry->mode)) return entry->target;
    const UniqueFd file = is_before ? compared.checkpoint.open_copy(*entry) : open_in_tree(compared.root, entry->path, O_RDONLY);
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) throw_errno("reading it");
    return read_whole(file, shown_limit, "it");
}

std::string difference_of(const Compared &compared, const TreeChange &change, const char *colour)
{
    const auto name = escape_for_display(change.path);
    const auto former = change.from.empty() ? name : escape_for_display(change.from);
    std::string text = fmt::format("diff --git a/{} b/{}\n", former, name);
    if (!change.before)
        text += fmt::format("new file mode {:o}\n", change.now->mode);
    else if (!change.now)
        text += fmt::format("deleted file mode {:o}\n", change.before->mode);
    else if (change.before->mode != change.now->mode)
        text += fmt::format("old mode {:o}\nnew mode {:o}\n", change.before->mode, change.now->mode);
    if (!change.from.empty()) text += fmt::format("rename from {}\nrename to {}\n", former, name);
    if (change.kind == TreeChangeKind::renamed || change.kind == TreeChangeKind::mode) return text;
    if (const auto loss = loss_of(change); !loss.empty()) return text + "The former content was not saved: " + loss + "\n";
    try {
        const auto old_text = content_of(compared, change.before, true);
        const auto new_text = content_of(compared, change.now, false);
        if ((old_text + new_text).find('\0') != std::string::npos)
            return text + fmt::format("Binary files differ ({} and {})\n", to_size(old_text.size()), to_size(new_text.size()));
        const auto old_name = change.before ? "a/" + former : "/dev/null";
        const auto new_name = change.now ? "b/" + name : "/dev/null";
        return text + run_diff_program(old_text, new_text, {colour, "--label", old_name, "--label", new_name}).output;
    } catch (const Failure &failure) { // too large, or gone meanwhile
        return text + "Not shown: " + failure.what() + "\n";
    }
}

// What a file has in it must not steer a terminal.
std::string without_controls(std::string text)
{
    for (char &byte : text)
        if ((static_cast<unsigned char>(byte) < ' ' && byte != '\n' && byte != '\t') || byte == '\x7f') byte = '?';
    return text;
}

// Shown a screen at a time where there is less, which of escapes passes only colours.
void page(const Compared &compared, const std::vector<const TreeChange *> &changes, std::ostream &out)
{
    const auto terminal = text_terminal(STDOUT_FILENO);
    const bool has_pager = terminal && has_program("less");
    std::string text;
    for (const auto *change : changes)
        text += difference_of(compared, *change, has_pager && terminal->has_colours ? "--color=always" : "--color=never");
    if (!has_pager) return void(out << (terminal ? without_controls(std::move(text)) : text) << std::flush);
    const auto file = in_memory_input(text);
    auto variables = terminal_variables();
    variables.emplace_back("LESSSECURE=1");
    run_at_terminal({"less", "-FRX", path_of_input(file)}, variables);
}

// --- Taking back.

void refuse_beside_session(const Compared &compared, std::ostream &notes)
{
    const auto &root = compared.checkpoint.head.root;
    const auto refuse = [&](const std::string &id) {
        throw Failure(FailureKind::busy,
                      "a session lives in " + escape_for_display(root) + "; end it first: pi-agentctl stop " + short_id(id));
    };
    for (const auto &one : compared.store.list())
        if (one.is_live && one.head.kind == CheckpointKind::session && are_nested(one.head.root, root)) refuse(one.id);
    try { // of which none is kept, or whose `pi` was killed
        for (const auto &session : ask_own({OwnSubject::sessions}).sessions)
            if (const auto &place = place_of(session.directory, session.project);
                place.empty() || are_nested(place, escape_for_display(root)))
                refuse(session.id);
    } catch (const Failure &failure) {
        if (failure.kind() == FailureKind::busy) throw;
        notes << "whether another session lives there is not known: " << failure.what() << '\n';
    }
}

// All that the plan replaces or removes, so that the undo can be taken back. Throws where something of it cannot be kept.
Checkpoint keep_first(const Compared &compared, const UndoPlan &plan)
{
    std::set<std::string> touched;
    for (const auto &step : plan.steps)
        touched.insert(step.path);
    Checkpoint made =
        compared.store.begin({CheckpointKind::undo, compared.checkpoint.head.root, time_now(), compared.checkpoint.head.device});
    CopyOrder copy;
    copy.size = copy.file = UINT64_MAX;
    copy.alone = &touched;
    const TreeLook now = take_checkpoint(compared.store, made, compared.root, look_at(compared.root, made.head.start), copy);
    for (const auto &step : plan.steps) {
        const TreeEntry *entry = now.find(step.path);
        const bool is_lost = entry != nullptr && S_ISREG(entry->mode) && entry->kept != Kept::copied && entry->kept != Kept::unreadable &&
                             (step.kind == TreeChangeKind::created || step.kind == TreeChangeKind::changed);
        if (is_lost)
            throw Failure(ExitStatus::unavailable, escape_for_display(step.path) + " cannot be kept as it is now (" +
                                                       reason_of(entry->kept) + "), so nothing was taken back");
    }
    compared.store.name(made, random_hex(16));
    return made;
}

void carry_out(const Compared &compared, const UndoPlan &plan, std::ostream &out, std::ostream &notes)
{
    refuse_beside_session(compared, notes);
    const Checkpoint kept = keep_first(compared, plan);
    const auto failures = take_back(plan, compared.checkpoint, compared.root);
    compared.store.write(kept, "after", look_at(compared.root, time_now()));
    for (const auto &failure : failures)
        notes << "not taken back: " << failure << '\n';
    out << "took back " << plan.steps.size() - std::min(failures.size(), plan.steps.size()) << " of " << plan.steps.size()
        << " changes; to have them again: pi-agentctl undo --session " << short_id(kept.id) << '\n';
    if (!failures.empty())
        throw Failure(ExitStatus::system_failure, "not all was taken back; run it again when what is in the way is gone");
}

} // namespace

void run_changes(const std::optional<std::string> &session, bool json, std::ostream &out)
{
    const Compared compared = compare_now(session);
    const auto &head = compared.checkpoint.head;
    const auto ended = compared.after ? std::optional(microseconds(compared.after->time)) : std::nullopt;
    if (json) {
        return print_json({{"session", compared.checkpoint.id},
                           {"directory", escape_for_display(head.root)},
                           {"started", time_or_null(microseconds(head.start))},
                           {"ended", time_or_null(ended)},
                           {"changes", mapped(compared.changes, [&](const TreeChange &change) { return to_json(change, head.place); })},
                           {"not_saved", not_saved(compared.before)},
                           {"not_looked_at", mapped(compared.before.left_out, escape_for_display)}},
                          out);
    }
    out << (head.kind == CheckpointKind::undo ? "undo " : "session ") << short_id(compared.checkpoint.id) << " in "
        << escape_for_display(head.root) << ", begun " << to_local_time(microseconds(head.start))
        << (ended                         ? ", ended " + to_local_time(*ended)
            : compared.checkpoint.is_live ? ", running"
                                          : ", whose end nobody saw")
        << '\n';
    std::size_t of_git = 0;
    for (const auto &change : compared.changes)
        change.is_of_git() ? void(++of_git) : void(out << line_of(change));
    if (compared.changes.empty()) out << "  nothing changed\n";
    if (of_git > 0) out << "  git's own files: " << of_git << " changed\n";
    for (const auto &[reason, count] : not_saved(compared.before))
        out << "not saved: " << count << (count == 1 ? " file: " : " files: ") << reason << '\n';
    show_left_out(compared.before, out);
}

void run_diff(const DiffOrder &order, std::ostream &out)
{
    const Compared compared = compare_now(order.session);
    const auto named = below_root(order.paths, compared.checkpoint.head.root);
    std::vector<const TreeChange *> shown;
    if (order.number) {
        const auto number = to_number<std::size_t>(*order.number);
        if (!number || *number >= compared.changes.size()) throw NothingToDo("there is no change of that number");
        return void(out << without_controls(difference_of(compared, compared.changes[*number], "--color=never")) << std::flush);
    }
    for (const auto &change : compared.changes)
        if (!is_directory(change) && (!change.is_of_git() || names_git(named)) && is_selected(named, change)) shown.push_back(&change);
    if (shown.empty()) throw NothingToDo("no file is different");
    page(compared, shown, out);
}

void run_undo(const UndoOrder &order, std::ostream &out, std::ostream &notes)
{
    const Compared compared = compare_now(order.session);
    if (!order.dry_run) refuse_beside_session(compared, notes);
    const auto &head = compared.checkpoint.head;
    const auto named = named_or_place(below_root(order.paths, head.root), compared.checkpoint);
    const UndoPlan plan = plan_undo(compared.changes, named);
    const auto elsewhere =
        std::count_if(compared.changes.begin(), compared.changes.end(), [&](const auto &change) { return !is_selected(named, change); });
    out << "In " << escape_for_display(order.paths.empty() ? where_it_worked(head) : head.root) << ":\n";
    if (!compared.after && head.kind == CheckpointKind::session)
        out << "Nobody saw the end of this session, so what you changed since counts as its own.\n";
    show_list("These changes are taken back:", plan.steps, out);
    show_list("These stay, because they changed since the session; name a file to take it back anyway:", plan.conflicts, out);
    show_list("These cannot be taken back:", plan.without, out);
    if (!plan.of_git.empty()) out << "git's own files stay; name .git to take " << plan.of_git.size() << " of them back\n";
    if (order.paths.empty() && elsewhere > 0)
        out << elsewhere << (elsewhere == 1 ? " change stays" : " changes stay") << " elsewhere in " << escape_for_display(head.root)
            << " (pi-agentctl changes); name a directory to take back what is below it\n";
    show_left_out(compared.before, out);
    if (plan.steps.empty()) throw NothingToDo("there is nothing to take back");
    if (order.dry_run) return;
    require_consent("Take them back?", order.yes);
    carry_out(compared, plan, out, notes);
}

void run_review(const std::optional<std::string> &session, std::ostream &out, std::ostream &notes)
{
    const Compared compared = compare_now(session);
    const UndoPlan plan = plan_undo(compared.changes, named_or_place({}, compared.checkpoint));
    std::vector<TreeChange> asked = plan.steps;
    asked.insert(asked.end(), plan.conflicts.begin(), plan.conflicts.end()); // the list says which they are
    show_list("These cannot be taken back:", plan.without, out);
    if (asked.empty()) throw NothingToDo("there is nothing to take back");
    const auto terminal = text_terminal(STDOUT_FILENO);
    if (!terminal || ::isatty(STDIN_FILENO) != 1)
        throw Failure(ExitStatus::usage, "review asks at a terminal; elsewhere use changes, diff and undo PATH");
    if (!has_program("fzf"))
        throw Failure(ExitStatus::configuration,
                      "review needs the program fzf, which is not installed; until your administrator installs it, use diff and undo PATH");
    refuse_beside_session(compared, notes);
    std::set<std::string> paths;
    for (const auto &one : asked)
        paths.insert(one.path);
    const auto is_filled = [&](const TreeChange &one) { // a directory goes, or comes, with what is in it
        const bool is_whole = one.kind == TreeChangeKind::created || one.kind == TreeChangeKind::deleted;
        const auto next = paths.lower_bound(one.path + "/");
        return is_whole && is_directory(one) && next != paths.end() && next->starts_with(one.path + "/");
    };
    std::string lines;
    for (std::size_t number = 0; number < compared.changes.size(); ++number)
        if (const auto &one = compared.changes[number]; paths.contains(one.path) && !is_filled(one))
            lines += std::to_string(number) + '\t' + line_of(one).substr(2);
    const auto list = in_memory_input(lines);
    const auto own = read_link(FdRef(AT_FDCWD), "/proc/self/exe");
    auto variables = terminal_variables();
    variables.push_back("FZF_DEFAULT_COMMAND=cat " + path_of_input(list));
    std::string marked;
    run_at_terminal({"fzf", "--multi", "--no-sort", "--layout=reverse", "--delimiter=\t", "--with-nth=2..",
                     "--preview-window=right,60%,wrap", "--header=TAB marks what to take back, ENTER goes on, ESC keeps all",
                     terminal->has_colours ? "--color=dark" : "--no-color",
                     fmt::format("--preview={} diff --session {} --change {{1}}", own, compared.checkpoint.id)},
                    variables, &marked);
    std::vector<std::string> named;
    for (const auto &line : split(marked, '\n'))
        if (const auto number = to_number<std::size_t>(line.substr(0, line.find('\t'))); number && *number < compared.changes.size())
            named.push_back(compared.changes[*number].path);
    if (named.empty()) throw NothingToDo("everything was kept");
    for (auto one = asked.rbegin(); one != asked.rend(); ++one)
        if (!one->before && is_filled(*one) &&
            std::all_of(asked.begin(), asked.end(), [&](const auto &other) { return !is_in(*one, other) || is_selected(named, other); }))
            named.push_back(one->path);
    const UndoPlan chosen = plan_undo(compared.changes, named);
    show_list("These changes are taken back:", chosen.steps, out);
    require_consent("Take them back?", false);
    carry_out(compared, chosen, out, notes);
}

} // namespace pi_agent
