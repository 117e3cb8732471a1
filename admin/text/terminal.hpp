// What commands ask and show on a terminal: questions, drafts, editors, excerpts, problems, differences, tables.
#pragma once

#include "common/host/identity.hpp"

#include <nlohmann/json_fwd.hpp>

#include <ostream>

namespace pi_agent {

// --- Reading a policy that somebody wants judged.

// The text of a regular file, at most one byte more than a policy may have. Its directory need not be trusted, because it is only data:
// load_policy reads what is installed, and does not take a user's file. Throws SystemFailure, or Failure (configuration) for anything but a
// file.
std::string read_draft(const std::string &path);

// --- Asking the administrator at the terminal.

// Returns if the answer is yes, or `yes` says so already (--yes). Throws NothingToDo if the answer is anything else, and Failure(usage) if
// it cannot ask, because standard input is not a terminal.
void require_consent(const std::string &question, bool yes);

// The first letter of the answer, one of `letters`; asks again until it is one. At the end of input, or if it cannot ask, the last of
// `letters`.
char ask_letter(const std::string &question, const std::string &letters);

// The answer, without blanks around it; `otherwise`, which the question shows in brackets, for an empty one. Empty at the end of input.
std::optional<std::string> ask_line(const std::string &question, const std::string &otherwise);

// A line that is not shown while it is typed; without a question if standard input is not a terminal. None at the end of input. A signal
// that would end the process does so only when the terminal is restored.
std::optional<std::string> read_hidden(const std::string &question);

// --- The options that every command has.

// -v: what is logged elsewhere is told on standard error. No variable of the caller's switches it on.
void log_steps();
// -q: standard output gets nothing, and that never fails.
void be_quiet();

// --- Which editor an administrator gets, and starting it.

// The value of a variable of the environment, none when it is not set.
using Variable = std::function<std::optional<std::string>(const std::string &name)>;
Variable own_environment();

// The program and its arguments, without the file to edit. It is root's own SUDO_EDITOR, VISUAL or EDITOR, the first that is set, divided
// at spaces: a program of the system's directories, or an absolute path that only root can change. If somebody else has called root's
// program (sudo, doas, pkexec: their variables say so), these values may be that caller's, kept by a rule that was not made for this. Then,
// and if none is set, it is the first that is installed of editor, nano and vi. Throws Failure(configuration) if there is no editor.
std::vector<std::string> choose_editor(const Variable &variable);

// The terminal's type and the language ("NAME=value"), for a program at this terminal.
std::vector<std::string> terminal_variables();

// Runs it on `file` at this terminal, as root, and waits. The editor gets only the terminal's type and the language from the environment,
// because it does what many variables say. Returns its exit status, 128 and the number for a signal.
int run_editor(const std::vector<std::string> &editor, const std::string &file);

// --- The answer of a command that has nothing to act on: neither done nor failed.

constexpr int nothing_status = 1; // as of grep(1): there was nothing to find

class NothingToDo : public std::runtime_error {
public:
    explicit NothingToDo(const std::string &text) : std::runtime_error(text) {}
};

// --- The refusal of what only root can do.

// For both readers: an administrator, and a user, who has to ask one.
inline std::string for_administrator(const std::string &command)
{
    return "; the administrator can run: sudo pi-agentctl " + command;
}

// `why` goes on after the command's name: "changes the host, so only root can run it". Throws Failure(denied) for everybody else.
inline AsRoot claim_root(const std::string &command, const std::string &why)
{
    if (::geteuid() != 0) throw Failure(FailureKind::root_only, command + " " + why + for_administrator(command));
    return AsRoot::claim();
}

// Whether every reader of YAML takes the text, without quotes, for that text.
bool is_plain_word(const std::string &text);

// --- A line of a policy file with a caret under a column, as compilers show it.

// The line of `text` that `where` names, and below it a caret under its column: two lines, each ended by a line feed. A long line is cut
// around the caret, tabs become spaces, and what could deceive a reader is escaped. "" where the text has no such line.
std::string excerpt(std::string_view text, const Position &where);

// --- What is wrong with a policy, for administrators and for programs.

// The text of a file that a diagnostic names; none where there is nothing to show of it.
using TextOfFile = std::function<std::optional<std::string>(const std::string &file)>;

// Reads the file again, as compilers do: shows what the administrator finds there now.
std::optional<std::string> read_again(const std::string &file);

// Each diagnostic behind `prefix` on a line, then the line of the file with a caret.
std::string show_problems(const std::vector<Diagnostic> &diagnostics, const std::string &prefix, const TextOfFile &text_of_file);

// `text` with `prefix` before each of its lines, and a line feed after each.
std::string prefix_lines(const std::string &prefix, const std::string &text);

// {"file", "line", "column", "key", "message", "remedy"}; null for what a diagnostic does not have.
nlohmann::json to_json(const Diagnostic &diagnostic);

// --- The difference of two texts, line by line, for people.

// What diff(1) prints in its unified form, each line indented by four spaces and made harmless; empty if they are the same. The head has
// the names.
std::string text_diff(const std::string &old_name, const std::string &old_text, const std::string &new_name, const std::string &new_text);

// --- How every command shows rows, sizes, durations and times to people, and its answer to programs.

constexpr int answer_version = 1; // of the JSON that commands print: a change that breaks its readers gets another

using Row = std::vector<std::string>;

// Columns of equal width, two spaces apart, the last one as long as it is; an empty value is shown as "-". Values are
// harmless already (common/base/text.hpp).
std::string to_table(const Row &header, std::vector<Row> rows);

// The columns of the terminal that standard output is, at most 100. Empty if `out` goes elsewhere: then everything is written whole.
std::optional<std::size_t> columns_for(const std::ostream &out);

// The same for `columns`: what of the last column does not fit loses its beginning or its end, which becomes "…".
enum class Cut { beginning, end };
std::string to_table(const Row &header, std::vector<Row> rows, std::size_t columns, Cut cut);

// For tables on a terminal: the first 8 digits of a session's id; a path of the user with "~" for their home; how long ago a time is.
std::string short_id(const std::string &session);
std::string short_path(const std::string &path, const std::string &user);
std::string to_age(const std::optional<std::uint64_t> &microseconds);

// 512, 1.5K, 20M, 3.2G, of 1024 each; and 0.25s, 12s, 3m 20s, 2h 5m, 3d 4h. Empty for what is not known.
std::string to_size(const std::optional<std::uint64_t> &bytes);
std::string to_duration(const std::optional<std::uint64_t> &microseconds);

// Microseconds since 1970: "2026-03-01 12:00:00" where this host is, for people, and "2026-03-01T12:00:00.000000Z" for programs.
std::string to_local_time(std::uint64_t microseconds);
std::string to_utc_time(std::uint64_t microseconds);

// What an option says: "2026-03-01", with " 12:00" or " 12:00:30", "today", "yesterday", "2h" (s, m, h or d) for so long ago, or "@" and
// seconds since 1970. Microseconds since 1970; throws Failure(usage).
std::uint64_t parse_time(std::string_view text, std::uint64_t now);
std::uint64_t now_microseconds();

// Prints `answer`, an object, with the version of its form.
void print_json(nlohmann::json answer, std::ostream &out);
// A number that may be unknown: null then.
nlohmann::json number_or_null(const std::optional<std::uint64_t> &number);
// The same of a time for programs (to_utc_time).
nlohmann::json time_or_null(const std::optional<std::uint64_t> &microseconds);
// Text that may be unknown, which is empty: null then.
nlohmann::json text_or_null(const std::string &text);

} // namespace pi_agent
