// Policies: YAML of any form is read or refused with places that exist, and what is read satisfies every rule that later code relies on.
#include "admin/host/host_things.hpp"

#include "admin/text/terminal.hpp"
#include "common/base/text.hpp"
#include "common/decide/explained.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy_load.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/policy/policy_sections.hpp"
#include "runner/as_agent/writer.hpp"
#include "support/property.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

constexpr char between_files = '\x1f'; // no policy may hold it

void require_place(const Diagnostic &diagnostic, const std::vector<PolicySource> &sources)
{
    require(!diagnostic.problem.empty(), "a diagnostic without a problem");
    require_harmless(to_string(diagnostic));
    const Position &where = diagnostic.where;
    const auto source = std::find_if(sources.begin(), sources.end(), [&](const auto &one) { return one.name == where.file; });
    require(source != sources.end(), "a diagnostic of no file that was read");
    if (where.line == 0) return;
    const auto lines = 1 + std::count(source->text.begin(), source->text.end(), '\n');
    require(where.line > 0 && where.line <= lines && where.column > 0, "a diagnostic of a place that is not there");
    const std::string shown = excerpt(source->text, where);
    require(shown.size() < 2000, "an excerpt of more than two lines");
    require_harmless(shown);
}

void require_environment(const Environment &environment)
{
    for (const auto &[name, value] : environment)
        require(!problem_of_env_name(name) && value.find('\0') == std::string::npos, "a variable that no policy may set");
}

void require_user(const UserEntry &user)
{
    require(is_account_name(user.name), "a user whose name is none");
    require(!user.roots.empty(), "a user without roots");
    for (const auto &root : user.roots) {
        require(!problem_of_root(root.text), "a root that is none");
        require(root.state_dir.empty() || !problem_beside_state(root.text, root.state_dir), "a root that holds the agents' homes");
        require(!root.at_own_path || !problem_of_root_in_unit(root.text), "a root that fits in no unit property");
    }
    require(!user.config || !problem_of_config_directory(*user.config), "a config directory that is none");
    require(!user.run_as || is_plain_name(*user.run_as), "an account whose name is not plain");
    for (const auto *key : {&user.ssh_key, &user.signing_key})
        require(!*key || !problem_of_host_file(**key), "a key that is no file");
    require_environment(user.env);
}

// Every line is one of ours: what a policy says can begin no other.
void require_sudoers(const Policy &policy, SudoKind kind)
{
    std::istringstream text(sudoers_text(policy, "/etc/pi-agent/policy.yaml", "/usr/libexec/runner", kind));
    std::size_t rules = 0;
    for (std::string line; std::getline(text, line);) {
        require_harmless(line);
        const bool is_rule = line.ends_with(" ALL=(root) NOPASSWD: /usr/libexec/runner \"\"");
        require(is_rule || line.starts_with("# ") || line.starts_with("Defaults!/usr/libexec/runner "), "a sudo rule of somebody else's");
        const std::string name = line.substr(line.starts_with("%") ? 1 : 0, line.find(' ') - (line.starts_with("%") ? 1 : 0));
        const bool is_number = name.size() > 1 && name.front() == '#' && name.find_first_not_of("0123456789", 1) == std::string::npos;
        require(!is_rule || is_plain_name(name) || is_number, "a sudo rule for no plain name and no number");
        rules += is_rule ? 1 : 0;
    }
    require(rules <= policy.users.size(), "more sudo rules than users"); // none for who is not in the database
}

// What a session gets, of whichever level.
void require_session(const Policy &policy)
{
    for (const auto &file : policy.env_files)
        require(!problem_of_managed_file(file.path), "a file of variables that is none");
    for (const auto &path : policy.view_paths)
        require(!problem_of_view_path(path.path), "a path that no session may show");
    for (const auto &device : policy.devices)
        require(!problem_of_device(device.path) && is_property_safe(device.path), "a device that fits in no unit");
    for (const auto &path : policy.projects.mask)
        require(!problem_of_project_path(path.path), "a masked path that is none");
    for (const auto &path : policy.projects.protect.value_or(std::vector<PolicyPath>()))
        require(!problem_of_project_path(path.path), "a protected path that is none");
    for (const auto &[name, text] : policy.documents)
        require(parse_json_object(text, name).is_object(), "a document that is no object");
    for (const auto &range : policy.network.allowed) {
        const auto again = parse_ip_range(to_string(range));
        require(std::holds_alternative<IpRange>(again) && to_string(std::get<IpRange>(again)) == to_string(range), "a range that is none");
    }
    const LimitsPolicy &limits = policy.limits;
    require(!limits.memory || !limits.memory_share, "memory is limited twice");
    for (const auto &row : limit_rows)
        if (const auto &said = limits.*row.said) require(said->amount >= row.least && said->amount <= row.most, "a limit out of bounds");
}

void require_level(const Policy &around, const Rules &rules)
{
    Policy inside = around;
    Problems problems;
    lay_over(inside, rules, problems);
    require(problems.empty(), "levels were taken that cannot be laid over each other");
    require_session(inside);
}

// Of few entries: a policy is copied for each.
void require_levels(const Policy &policy)
{
    Policy around = policy;
    around.users.clear();
    int left = 8;
    for (const auto &entry : policy.users) {
        if (entry.rules && left-- > 0) require_level(around, *entry.rules);
        for (const auto &root : entry.roots)
            if (root.rules && left-- > 0) require_level(around, *root.rules);
        if (left <= 0) return;
    }
}

void require_valid(const Policy &policy)
{
    std::for_each(policy.users.begin(), policy.users.end(), require_user);
    require(!policy.users.empty() || !policy.wrapper.enable, "nobody is authorised");
    require(is_plain_name(policy.agent.user) && is_plain_name(policy.agent.group), "an agent's account whose name is not plain");
    require(!problem_of_binary(policy.agent.binary) && is_property_safe(policy.agent.binary), "an agent's program that fits in no unit");
    require(!problem_of_state_dir(policy.agent.state_dir), "a place of the state that no unit can name");
    require(is_plain_name(policy.wrapper.command_name), "a command whose name is not plain");
    require_environment(policy.env);
    for (const auto &file : policy.host_env_files)
        require(!problem_of_host_file(file), "a file of variables that is none");
    for (const auto &[path, file_class] : policy.config_classes.rules())
        require(!problem_of_config_path(path), "a class for no path of the config directory");
    require_session(policy);
    require_levels(policy);
    for (const SudoKind kind : {SudoKind::original, SudoKind::rs})
        require_sudoers(policy, kind);
    require_harmless(to_string(find_exposed_secrets(policy).empty() ? Diagnostic{} : find_exposed_secrets(policy).front()));
}

bool is_accepted(const std::vector<PolicySource> &sources)
{
    try {
        require_valid(parse_policy(sources));
        return true;
    } catch (const PolicyError &error) {
        require(!error.diagnostics().empty(), "refused without a diagnostic");
        for (const auto &diagnostic : error.diagnostics())
            require_place(diagnostic, sources);
        return false;
    }
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::vector<std::string> texts = parts_of(input, 2, between_files);
    std::vector<PolicySource> sources = {{"policy.yaml", texts[0]}};
    if (input.find(between_files) != std::string_view::npos) sources.push_back({"policy.d/a.yaml", texts[1]});
    const bool accepted = is_accepted(sources);
    sources.push_back({"policy.d/b.yaml", "# nothing\n"});
    require(is_accepted(sources) == accepted, "a file of comments makes a difference");
    require_linear(input, [](const std::string &text) { is_accepted({{"policy.yaml", text}}); });
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t max_size);

// Sometimes a line with a key of the policy's table is put in, with a value that stands there; else whatever libFuzzer does.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size, std::size_t max_size, unsigned int seed)
{
    if (seed % 4 != 0) return LLVMFuzzerMutate(data, size, max_size);
    const auto keys = policy_keys();
    const PolicyKey &key = keys[seed / 4 % keys.size()];
    const auto depth = static_cast<std::size_t>(std::count(key.path.begin(), key.path.end(), '.'));
    const std::string_view value = seed / 4 / keys.size() % 2 == 0 ? key.example : key.standard; // of every key both
    const std::string line = std::string(2 * depth, ' ') + std::string(last_part(key)) + ": " + std::string(value) + "\n";
    if (size + line.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const std::size_t newline = text.find('\n', size == 0 ? 0 : seed / 1024 % size);
    const std::size_t at = newline == std::string_view::npos ? size : newline + 1;
    std::memmove(data + at + line.size(), data + at, size - at);
    std::memcpy(data + at, line.data(), line.size());
    return size + line.size();
}
