// Exchanges one file of the installed policy, and checks the whole.
#include "admin/apply/policy_draft.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/error.hpp"

#include <algorithm>

namespace pi_agent {

std::optional<std::string> find_text(const PolicyFiles &files, const std::string &file)
{
    const auto found = std::find_if(files.begin(), files.end(), [&](const PolicySource &source) { return source.name == file; });
    return found == files.end() ? std::nullopt : std::optional(found->text);
}

PolicyFiles with_draft(PolicyFiles files, const std::string &file, const std::string &draft)
{
    const auto in_order = [](const PolicySource &source, const std::string &name) { return source.name < name; };
    const auto place = file == files.front().name ? files.begin() : std::lower_bound(files.begin() + 1, files.end(), file, in_order);
    if (place == files.end() || place->name != file)
        files.insert(place, {file, draft});
    else
        place->text = draft;
    return files;
}

std::string mistakes_in(const PolicyFiles &files, const Observer &observer)
{
    try {
        // Something that does not run just now keeps nobody from changing the policy.
        const auto reading = read_policy_as_far_as_possible(files);
        // As for apply: the emergency stop does not wait until the host fits what nobody can start by.
        const bool is_stop = reading.problems.empty() && reading.complete && !reading.policy.wrapper.enable;
        const auto mistakes = is_stop ? std::vector<Diagnostic>() : find_mistakes(reading, observer, Means::installed);
        auto shown = show_problems(mistakes, "", [&files](const std::string &name) { return find_text(files, name); });
        if (!shown.empty()) shown.pop_back(); // the caller prints the last line feed
        return shown;
    } catch (const Failure &failure) {
        return failure.what();
    }
}

} // namespace pi_agent
