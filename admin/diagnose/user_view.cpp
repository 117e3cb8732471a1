// Looks with a user's rights.
#include "admin/diagnose/user_view.hpp"

#include "admin/diagnose/faults.hpp"
#include "common/as_user/root_path.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/view/root_tree.hpp"

#include <sstream>

namespace pi_agent {

namespace {

constexpr std::size_t links_out_entries = 20'000;
constexpr std::size_t links_out_bytes = 20'000;

// One question, asked with the rights of the user.
using Question = std::function<Finding()>;

Writing writing_to(FdRef directory)
{
    struct stat facts {};
    if (::fstat(directory.get(), &facts) != 0 || ::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0) return Writing::none;
    return facts.st_uid == ::geteuid() ? Writing::as_owner : Writing::as_others_let;
}

// Where the directory is: a start is refused on some file systems, and where another one is mounted inside a root.
Finding found_at(FdRef directory, std::string path)
{
    struct statx facts {};
    const bool is_told = ::statx(directory.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &facts) == 0;
    const auto mounts = list_mounts();
    const auto *mount = mount_that_holds(mounts, directory);
    std::string problem;
    std::string mapping_problem;
    if (mount != nullptr) {
        problem = problem_of_file_system(path, mount->type).value_or("");
        // Of the file systems that kernels do not map, projects in containers are on this one. A start asks the kernel.
        if (mount->type == "overlay") mapping_problem = problem_of_mapping(path, name_mount(mounts, directory));
    }
    Finding finding{Finding::Kind::usable, std::move(path), is_told ? facts.stx_mnt_id : 0, std::move(problem), std::move(mapping_problem)};
    finding.writing = writing_to(directory);
    return finding;
}

Finding find_root(const RootSpec &root, const Account &user)
{
    const auto result = resolve_root(root, user);
    if (const auto *problem = std::get_if<RootProblem>(&result)) {
        Finding unusable{Finding::Kind::unusable, problem->text};
        unusable.is_gone = problem->is_gone;
        return unusable;
    }
    const auto &resolved = std::get<ResolvedRoot>(result);
    auto finding = found_at(resolved.fd, resolved.path);
    auto danger = danger_of_root(resolved.fd, resolved.path, user);
    finding.danger = std::move(danger.problem);
    finding.remedy = std::move(danger.remedy);
    return finding;
}

Finding find_directory(const std::string &path)
{
    try {
        const auto directory = open_working_directory(path);
        return found_at(directory, path_of_working_directory(directory));
    } catch (const Failure &failure) {
        return {Finding::Kind::unusable, failure.what()};
    }
}

std::vector<Finding> ask_in_child(const AsRoot &root, const Account &user, const std::vector<Question> &questions)
{
    Child child(root, "look for " + user.name, user, {}, [&questions](const AsUser &, FdRef channel) {
        for (const auto &question : questions) {
            const auto finding = question();
            Encoder answer;
            answer.number(finding.kind == Finding::Kind::usable ? 1 : 0).text(finding.text);
            answer.number(finding.mount).text(finding.file_system_problem).text(finding.mapping_problem);
            answer.text(finding.danger).text(finding.remedy).number(static_cast<std::uint64_t>(finding.writing));
            answer.number(finding.is_gone ? 1 : 0);
            send_answer(channel, answer.bytes());
        }
    });
    std::vector<Finding> findings;
    while (findings.size() < questions.size()) {
        const auto packet = child.receive();
        Decoder answer(packet.bytes);
        const auto kind = answer.number() == 1 ? Finding::Kind::usable : Finding::Kind::unusable;
        Finding found{kind, answer.text(), answer.number(), answer.text(), answer.text(), answer.text(), answer.text()}; // in this order
        const auto writing = answer.number(); // the child's word, and so the user's
        if (writing <= static_cast<std::uint64_t>(Writing::as_owner)) found.writing = static_cast<Writing>(writing);
        found.is_gone = answer.number() == 1;
        findings.push_back(std::move(found));
        answer.end();
    }
    return findings;
}

std::vector<Finding> ask(const Observer &observer, const Account &user, const std::vector<Question> &questions)
{
    std::vector<Finding> findings;
    if (!observer.can_look_for(user)) return {questions.size(), {Finding::Kind::unknown, "only root or " + user.name + " can verify this"}};
    if (observer.root()) {
        try {
            return ask_in_child(*observer.root(), user, questions);
        } catch (const Failure &failure) { // a file system that does not answer is a finding too
            return {questions.size(), {Finding::Kind::unusable, failure.what()}};
        }
    }
    for (const auto &question : questions)
        findings.push_back(question());
    return findings;
}

} // namespace

Observer Observer::self()
{
    Observer observer;
    if (::geteuid() == 0) observer.root_ = AsRoot::claim();
    return observer;
}

bool Observer::can_look_for(const Account &user) const noexcept
{
    return user.uid != Uid(0) && (root_.has_value() || user.uid == Uid(::geteuid()));
}

std::vector<Finding> Observer::resolve_roots(const std::vector<RootSpec> &roots, const Account &user) const
{
    std::vector<Question> questions;
    for (const auto &root : roots)
        questions.emplace_back([&root, &user] { return find_root(root, user); });
    return ask(*this, user, questions);
}

std::vector<Finding> Observer::resolve_roots(const AccessRules &rules, const Account &user) const
{
    std::vector<RootSpec> roots;
    for (const auto &root : rules.roots)
        roots.push_back(root.spec);
    return resolve_roots(roots, user);
}

Finding Observer::resolve_directory(const std::string &path, const Account &user) const
{
    return ask(*this, user, {[&path] { return find_directory(path); }}).front();
}

AgentPlaces Observer::agent_places(const Policy &policy, const AccessRules &rules, const Account &user) const
{
    if (!root_) return find_agent_places(policy, rules, user);
    AgentPlaces places = places_of_state(policy, rules);
    Child child(*root_, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        for (const auto &root : find_roots(rules, user))
            send_answer(channel, Encoder().text(root.path).number(root.device).number(root.inode).bytes());
        send_answer(channel, Encoder().text("").bytes());
    });
    for (;;) {
        const Packet packet = child.receive();
        Decoder answer(packet.bytes);
        std::string path = answer.text();
        if (path.empty()) return places;
        places.places.push_back({std::move(path), answer.number(), answer.number()});
        answer.end();
    }
}

std::vector<Finding> Observer::agents_on_way(const Policy &policy, const AccessRules &rules, const Account &user,
                                             const std::vector<std::string> &paths) const
{
    const UserPaths followed(agent_places(policy, rules, user));
    std::vector<Question> questions;
    for (const auto &path : paths)
        questions.emplace_back([&] {
            const AgentPlace *place = followed.entered_by(path);
            return Finding{Finding::Kind::usable, place == nullptr ? "" : place->path};
        });
    return ask(*this, user, questions);
}

std::vector<std::string> Observer::links_out(const Policy &policy, const AccessRules &rules, const Account &user) const
{
    const UserPaths followed(agent_places(policy, rules, user));
    const Finding found =
        ask(*this, user, {[&] {
            std::size_t left = links_out_entries;
            std::string text;
            for (const auto &link : find_links_out(followed, paths_read_as_user(policy, rules, user), [&] { return left-- > 0; }))
                if (text.size() + link.size() < links_out_bytes) text += link + "\n";
            return Finding{Finding::Kind::usable, text};
        }}).front();
    std::vector<std::string> links;
    std::istringstream lines(found.kind == Finding::Kind::usable ? found.text : "");
    for (std::string line; std::getline(lines, line);)
        links.push_back(line);
    return links;
}

OpenedHome Observer::find_home_directories(const ToolchainsPolicy &toolchains, const Account &user) const
{
    if (!root_) return pi_agent::find_home_directories(user, toolchains);
    Child child(*root_, "look for " + user.name, user, {},
                [&](const AsUser & /*user*/, FdRef channel) { send_home(channel, pi_agent::find_home_directories(user, toolchains)); });
    return receive_home([&] { return child.receive(); });
}

std::optional<AccessRules> rules_of_user(const Policy &policy, const Account &user)
{
    try {
        auto access = find_access_rules(policy, user, policy_path);
        auto *rules = std::get_if<AccessRules>(&access);
        return rules == nullptr ? std::nullopt : std::optional(std::move(*rules));
    } catch (const PolicyError &) {
        return std::nullopt;
    }
}

} // namespace pi_agent
