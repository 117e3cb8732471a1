// A draft beside the policy, an editor, a check, and a rename.
#include "admin/apply/apply.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"

#include <exception>

namespace pi_agent {

namespace {

constexpr mode_t draft_mode = 0600;
constexpr mode_t policy_mode = 0644;

// Beside the file that is edited, where only root can write, under a name that is not read as a part of the policy.
class Draft {
public:
    Draft(const AsRoot &root, std::string file) : file_(std::move(file)), directory_(open_policy_directory(root, file_)) {}

    [[nodiscard]] const std::string &file() const noexcept { return file_; }
    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] std::string read() const { return read_trusted_file(path_, yaml_size_limit, "draft of the policy"); }
    [[nodiscard]] bool exists() const { return has_name(directory_, name_, "examining " + path_); }
    void write(const std::string &text) const { write_beside(directory_, name_, text, draft_mode, path_); }
    void install(const std::string &text) const { replace_root_file(directory_, split_last(file_).second, text, policy_mode, file_); }
    void remove() const { remove_root_file(directory_, name_, path_); }

private:
    std::string file_;
    UniqueFd directory_;
    std::string path_ = file_ + ".edit";
    std::string name_ = split_last(path_).second;
};

// What the editor begins with. A new file begins with a comment, so that an unchanged one is not created.
std::string text_of(const PolicyFiles &files, const std::string &file)
{
    if (const auto text = find_text(files, file)) return *text;
    if (const auto user = user_of_file(file, policy_path))
        return "# What the policy says of " + *user + ", as it would stand below users." + *user +
               ", without run_as. For example:\n# roots: [~/projects]\n";
    return "# A part of the policy, joined to " + std::string(policy_path) + ". What another part says already is an error here.\n";
}

// The draft makes users.d, and from then on nobody starts by a policy that does not say agent.accounts, whatever becomes of the draft.
void require_accounts_said(const PolicyFiles &files, const std::string &file)
{
    if (!user_of_file(file, policy_path) || has_user_files(policy_path)) return;
    if (says_accounts(files)) return;
    throw Failure(ExitStatus::configuration, "with files in users.d more than one user is possible, and the policy does not say whether "
                                             "users share an account (agent.accounts); say it first, for example: sudo pi-agentctl set "
                                             "agent.accounts per-user");
}

// An edit that was cut short (the host went down, the terminal was closed) left work that may be wanted. True if the administrator goes on
// with it.
bool take_up_or_begin(const Draft &draft, const std::string &text)
{
    if (draft.exists()) {
        const char answer = ask_letter("There is a draft of an edit that was cut short, " + draft.path() +
                                           ": k(eep on with it), d(iscard it), or x (leave it)?",
                                       "kdx");
        if (answer == 'k') return true;
        if (answer == 'x') throw Failure(FailureKind::busy, "an interrupted edit left " + draft.path() + "; look at it, then remove it");
    }
    draft.write(text);
    return false;
}

// The text of the draft once it is good or unchanged: exactly the checked text is installed. Throws when the draft is given up.
std::string edit_until_good(const Draft &draft, const PolicyFiles &files, const Observer &observer, const std::vector<std::string> &editor,
                            std::ostream &warnings)
{
    for (;;) {
        const int status = run_editor(editor, draft.path());
        std::string mistakes = "the editor " + editor.front() + " ended with status " + std::to_string(status);
        if (status == 0) {
            auto text = draft.read();
            if (text == text_of(files, draft.file())) return text;
            mistakes = mistakes_in(with_draft(files, draft.file(), text), observer);
            if (mistakes.empty()) return text;
        }
        warnings << mistakes << '\n' << std::flush;
        if (ask_letter("[e]dit again, or [d]iscard the changes?", "exd") == 'e') continue;
        draft.remove();
        throw Failure(ExitStatus::configuration, "the changes are discarded, and the policy is unchanged");
    }
}

// Unless the text is in force, or somebody else has begun another draft.
void best_effort_keep_draft(const AsRoot &root, const Draft &draft, const std::string &text, std::ostream &warnings)
{
    try {
        const auto lock = take_edit_lock(root);
        if (draft.exists() || find_text(read_policy_sources(policy_path), draft.file()) == text) return;
        draft.write(text);
        warnings << "pi-agentctl: your draft is " << draft.path() << ", and 'pi-agentctl edit' continues with it\n";
    } catch (const std::exception &failure) {
        warnings << "pi-agentctl: warning: your changes are not kept as a draft: " << failure.what() << '\n';
    }
}

// If that fails, the policy of before comes back, and what was written is a draft again.
void apply_edit(const AsRoot &root, const Draft &draft, const PolicyFiles &before, const std::string &text, std::ostream &out,
                std::ostream &warnings)
{
    try {
        run_apply({}, out, warnings, before);
    } catch (const std::exception &) {
        best_effort_keep_draft(root, draft, text, warnings);
        throw;
    }
}

} // namespace

void run_edit(const std::optional<std::string> &name, std::ostream &out, std::ostream &warnings)
{
    require_own_policy("edit");
    claim_root("edit", "changes the policy, so only root can run it");
    const auto observer = Observer::self();
    const auto file = policy_file_named(name.value_or(policy_path));
    auto lock = take_edit_lock(*observer.root());
    const auto files = read_policy_sources(policy_path);
    require_accounts_said(files, file);
    const auto editor = choose_editor(own_environment());
    const auto before = text_of(files, file);
    const Draft draft(*observer.root(), file);
    const bool taken_up = take_up_or_begin(draft, before);
    const auto text = edit_until_good(draft, files, observer, editor, warnings);
    if (text == before) {
        draft.remove();
        out << "the policy is as it was\n";
        return;
    }
    const auto require_unchanged = [&] {
        if (!are_same(read_policy_sources(policy_path), files))
            throw Failure(FailureKind::changed_meanwhile, "another command changed the policy meanwhile; your draft is " + draft.path() +
                                                              ", and the same command continues with it");
    };
    require_unchanged();
    if (taken_up) {
        out << difference_of(files, with_draft(files, file, text)) << std::flush;
        if (ask_letter("The draft is older than this edit, and the policy may have changed since. Put it in place as shown? y(es), n(o)",
                       "yn") != 'y')
            throw Failure(ExitStatus::limit,
                          "the policy is unchanged; your draft is " + draft.path() + ", and the same command continues with it");
        require_unchanged();
    }
    draft.install(text);
    draft.remove();
    drop_empty_users_directory(with_draft(files, file, text));
    lock.reset();
    out << "the policy is changed\n" << std::flush;
    if (ask_letter("Apply it now? (y or n)", "yn") == 'y') return apply_edit(*observer.root(), draft, files, text, out, warnings);
    out << "it says who may start what from now on; people who were added or removed, and changes of agent, wrapper and run_as, need "
           "'pi-agentctl apply'\n";
}

} // namespace pi_agent
