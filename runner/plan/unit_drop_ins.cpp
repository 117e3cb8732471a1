// The settings that a host may have for all of its services, and so for sessions: an allowlist, because systemd gets new ones.
#include "runner/plan/unit_drop_ins.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace pi_agent {

namespace {

// They schedule, count, log, limit and notify. The policy's own limits are asked of the kernel (runner/root/kernel/enforcement.cpp). The
// launcher gives the agent an environment and a umask of its own; ends are by KILL, and nothing is started again
// (runner/plan/unit_properties.cpp).
constexpr std::array<std::string_view, 10> harmless_beginnings = {"CPU",  "IO",     "IPAccounting", "Memory",  "Tasks",
                                                                  "NUMA", "Syslog", "LogRate",      "Timeout", "ManagedOOM"};
constexpr std::string_view harmless = "Nice OOMScoreAdjust OOMPolicy LimitNOFILE LimitNPROC LimitAS LimitCPU LimitFSIZE LimitDATA "
                                      "LimitSTACK LimitRSS LimitLOCKS LimitSIGPENDING LimitMSGQUEUE LimitNICE Environment EnvironmentFile "
                                      "PassEnvironment UnsetEnvironment LogLevelMax LogExtraFields StandardOutput StandardError UMask "
                                      "StartupCPUWeight StartupIOWeight DefaultMemoryLow DefaultMemoryMin Restart RestartSec RestartSteps "
                                      "RestartMaxDelaySec";
// Begins like a harmless one, and ends the agent: node makes code at run time.
constexpr std::string_view no_code_at_run_time = "MemoryDenyWriteExecute";
// Of [Unit], these alone: dependencies can only be added, and conditions keep a session from starting.
constexpr std::string_view unit_in_the_way = "CollectMode RefuseManualStop StopWhenUnneeded";

std::string_view trimmed(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r";
    const std::size_t begin = text.find_first_not_of(blanks);
    return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool is_in_the_way(std::string_view section, std::string_view key)
{
    if (section == "[Unit]") return has_word(unit_in_the_way, key);
    if (section == "[Install]" || section.starts_with("[X-")) return false;
    if (key == no_code_at_run_time) return true;
    return !has_word(harmless, key) && std::none_of(harmless_beginnings.begin(), harmless_beginnings.end(),
                                                    [&](std::string_view beginning) { return key.starts_with(beginning); });
}

} // namespace

std::vector<std::string> settings_in_the_way(std::string_view text)
{
    std::vector<std::string> found;
    std::string_view section;
    bool goes_on = false;
    for (const std::string_view whole : split(text, '\n')) {
        const std::string_view line = trimmed(whole);
        const bool is_comment = line.starts_with('#') || line.starts_with(';'); // also between the lines of one setting
        if (is_comment || (line.empty() && !goes_on)) continue;
        const bool begins = !std::exchange(goes_on, line.ends_with('\\'));
        if (!begins) continue;
        if (line.starts_with('[')) {
            section = line;
            continue;
        }
        const std::string key(trimmed(line.substr(0, line.find('='))));
        if (is_in_the_way(section, key) && std::find(found.begin(), found.end(), key) == found.end()) found.push_back(key);
    }
    return found;
}

void require_harmless_drop_in(const std::string &file, std::string_view text)
{
    const std::vector<std::string> found = settings_in_the_way(text);
    if (found.empty()) return;
    std::string keys;
    for (const auto &key : found)
        keys += (keys.empty() ? "" : ", ") + escape_for_display(key) + "=";
    throw Failure(FailureKind::sandbox_method, "the host changes the session's unit: " + escape_for_display(file) + " sets " + keys +
                                                   ", which could weaken the sandbox. " + without_drop_ins);
}

} // namespace pi_agent
