// Wording of the notice, and its entry in the journal.
#include "wrapper/aftermath_notice.hpp"

#include "common/base/text.hpp"
#include "common/record/journal.hpp"
#include "wrapper/aftermath.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

constexpr std::size_t line_limit = 10;              // findings
constexpr std::size_t name_limit = 200;             // bytes of a name in a line
constexpr std::size_t recorded_limit = 300;         // findings
constexpr std::size_t recorded_bytes = 64UL * 1024; // of paths: an entry is one datagram
constexpr int journal_patience_milliseconds = 500;
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
    std::string text = "pi: the search for such files was not complete (at most " + std::to_string(aftermath_seconds) + " seconds and " +
                       std::to_string(aftermath_entries) + " entries); not searched: ";
    for (std::size_t index = 0; index < after.not_looked_at.size(); ++index)
        text += (index == 0 ? "" : ", ") + shown_path(after.not_looked_at[index], cwd);
    if (after.more_not_looked_at > 0) text += " and " + std::to_string(after.more_not_looked_at) + " more directories";
    return text + "\n";
}

} // namespace

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
