// Has a child, as the caller, read what policy and caller name, and ask git; checks the answers; and root's own read of providers' keys.
#include "runner/root/errand/errand.hpp"

#include "runner/as_user/git_identity.hpp"
#include "runner/as_user/project.hpp"

namespace pi_agent {

namespace {

constexpr int copying_patience_seconds = 20;

DetachedMount make_place_for_copies(const AsRoot &root, const Account &user)
{
    // The bytes, and a page for each file: a user who takes the child over can fill no more.
    const std::string size = defence_is_on("copies-limit") ? std::to_string(copies_size_limit + copies_count_limit * 4096) : "1g";
    return new_filesystem(root, "tmpfs",
                          {{"source", "pi-agent-named"},
                           {"mode", "0755"},
                           {"uid", std::to_string(user.uid.value())},
                           {"gid", std::to_string(user.gid.value())},
                           {"size", size},
                           {"nr_inodes", std::to_string(copies_count_limit + 2)}},
                          false, Execution::allowed);
}

[[noreturn]] void refuse(const ProviderRule &rule, const std::string &problem)
{
    throw Failure(FailureKind::named_place, escape_for_display(rule.key_file.path) + " (" + to_string(rule.key_file.where) +
                                                "), the key of " + rule.name + ", " + problem);
}

constexpr const char *ssh_inside = "run/pi-agent/ssh";
// ssh_config(5). ssh asks no questions, tries no other key, and refuses a host that the user does not know.
constexpr const char *ssh_settings = "Host *\n"
                                     "    IdentityFile /run/pi-agent/ssh/key\n"
                                     "    IdentitiesOnly yes\n"
                                     "    IdentityAgent none\n"
                                     "    BatchMode yes\n"
                                     "    StrictHostKeyChecking yes\n"
                                     "    UserKnownHostsFile /run/pi-agent/ssh/known_hosts\n"
                                     "    GlobalKnownHostsFile none\n"
                                     "    UpdateHostKeys no\n"
                                     "    ForwardAgent no\n";

} // namespace

NamedCopies copy_for_session(const AsRoot &root, const Account &user, const std::vector<ArgumentFile> &files, const ShownPlaces &shown,
                             const AgentPlaces &agents, const SessionWatch &watch)
{
    if (files.empty()) return {};
    if (files.size() > named_files_limit)
        throw Failure(FailureKind::named_file, "the arguments name more than " + std::to_string(named_files_limit) +
                                                   " files; name fewer files, or their directory in the prompt");
    DetachedMount copies = make_place_for_copies(root, user);
    HandedFiles handed;
    {
        Child child(root, "reader of the files that you name", user, {copies.fd.get()}, [&](const AsUser & /*user*/, FdRef channel) {
            fault_point("reading-named");
            send_long_answer(channel, encode(copy_named_files(UserPaths(agents), files, shown, copies.fd)));
        });
        handed = decode_fields<HandedFiles>(child.receive_long(copying_patience_seconds, [&] { watch.check(); }));
    } // the child has ended: nobody else can write there
    if (handed.states.size() != files.size()) throw ProtocolError("other files were copied than were asked for");
    if (handed.states.find(static_cast<char>(Handed::copied)) == std::string::npos) return {std::move(handed), std::nullopt};
    make_read_only(root, copies);
    return {std::move(handed), std::move(copies)};
}

std::string read_provider_key(const ProviderRule &rule)
{
    const UniqueFd fd = open_trusted(rule.key_file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY,
                                     "key of " + rule.name + " (" + to_string(rule.key_file.where) + ")");
    const struct stat facts = examine(fd, "examining " + rule.key_file.path);
    if (!S_ISREG(facts.st_mode)) refuse(rule, "is not a regular file");
    if ((facts.st_mode & 077U) != 0 && defence_is_on("key-file-mode"))
        refuse(rule, "is readable for others than root; " +
                         command_on("chmod 600", rule.key_file.path, "move it to a file of its own in /etc/pi-agent with mode 0600"));
    std::string key = read_whole(fd, gate_key_bytes, rule.key_file.path);
    if (key.ends_with('\n')) key.pop_back();
    if (key.ends_with('\r')) key.pop_back();
    if (key.empty()) refuse(rule, "is empty; write the key into it, on one line");
    if (!std::all_of(key.begin(), key.end(), [](char byte) { return byte > ' ' && byte <= '~'; }))
        refuse(rule, "has more than a key; write the key alone into it, on one line");
    return key;
}

std::vector<std::string> ask_placeholders(const AsRoot &root, const std::vector<ProviderRule> &rules)
{
    if (rules.empty()) return {};
    Child child(root, "reader of the providers' keys", [&] {
        fault_point("reading-keys");
        std::vector<std::string> placeholders;
        for (const auto &rule : rules) {
            const Provider *known = find_provider(rule.name);
            if (known == nullptr) refuse(rule, "belongs to no provider that a gate knows");
            placeholders.push_back(form_of_key(*known, read_provider_key(rule)).placeholder);
        }
        return Encoder().texts(placeholders).bytes();
    });
    return decode_texts(child.receive_long(child_patience_seconds), gate_provider_limit);
}

CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents)
{
    if (variables.empty()) return {};
    try {
        auto files = ask<CertificateFiles>(root, {"reader of certificates", user}, [&](const AsUser &) {
            fault_point("reading-certs");
            return read_certificate_files(UserPaths(agents), variables, shown);
        });
        for (const auto &[name, path] : files.renamed)
            if (std::none_of(variables.begin(), variables.end(), [&, &wanted = name](const auto &one) { return one.name == wanted; }))
                throw ProtocolError(CertificateFiles::not_asked_for);
        return files;
    } catch (const Failure &failure) { // not a reason to refuse a session
        return {{}, {}, {std::string("files of certificates that variables name are not shown to the agent: ") + failure.what()}};
    }
}

void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files)
{
    if (files.contents.empty()) return;
    session.make_directory("run/pi-agent/ca");
    for (std::size_t number = 1; number <= files.contents.size(); ++number)
        session.write_file(certificate_path_inside(number).substr(1), files.contents[number - 1]);
}

std::vector<EnvAssignment> read_managed_env_files(const std::vector<PolicyPath> &files)
{
    std::vector<EnvAssignment> all;
    for (const auto &file : files) {
        const UniqueFd fd = open_trusted(file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, "file of variables (" + to_string(file.where) + ")");
        const struct stat facts = examine(fd, "examining " + file.path);
        if (!S_ISREG(facts.st_mode))
            throw Failure(FailureKind::named_place, file.path + " (" + to_string(file.where) + ") is not a regular file");
        if ((facts.st_mode & 077U) != 0 && defence_is_on("env-file-mode"))
            throw Failure(FailureKind::named_place,
                          escape_for_display(file.path) + " (" + to_string(file.where) +
                              ") is readable for others than root, and may hold secrets; " +
                              command_on("chmod 600", file.path, "move them to a file of their own in /etc/pi-agent with mode 0600") +
                              ", or move what is not secret to 'env'");
        auto assignments = parse_env_file(read_whole(fd, env_file_limit, file.path), file.path);
        for (const auto &assignment : assignments)
            if (const auto problem = problem_of_env_name(assignment.name))
                throw Failure(FailureKind::named_place, assignment.where + ": " + assignment.name + " " + *problem + "; remove it");
        all.insert(all.end(), std::make_move_iterator(assignments.begin()), std::make_move_iterator(assignments.end()));
    }
    return all;
}

std::vector<EnvAssignment> ask_env_names(const AsRoot &root, const std::vector<PolicyPath> &files)
{
    if (files.empty()) return {};
    if (!defence_is_on("late-secrets")) return read_managed_env_files(files);
    Child child(root, "reader of the policy's variables", [&] {
        Assignments names{read_managed_env_files(files)};
        for (auto &[name, value, where] : names.list)
            if (!value.empty() && !names_certificates(name)) value = "not told";
        return encode(names);
    });
    return decode_fields<Assignments>(child.receive_long(child_patience_seconds)).list;
}

HostVariables ask_host_env_files(const AsRoot &root, const Account &user, const std::vector<std::string> &files, const AgentPlaces &agents)
{
    if (files.empty()) return {};
    return ask<HostVariables>(root, {"reader of the user's variables", user}, [&](const AsUser &) {
        fault_point("reading-env");
        return read_host_env_files(UserPaths(agents), files, user.home);
    });
}

SshFiles ask_ssh_files(const AsRoot &root, const Account &user, const AccessRules &rules, const AgentPlaces &agents)
{
    if (!rules.ssh_key && !rules.signing_key) return {};
    try {
        return ask<SshFiles>(root, {"reader of the ssh key", user}, [&](const AsUser &) {
            fault_point("reading-ssh");
            return read_ssh_files(UserPaths(agents), rules.ssh_key, rules.signing_key, user.home);
        });
    } catch (const Failure &failure) { // not a reason to refuse a session
        SshFiles none;
        if (rules.ssh_key) none.notices.push_back(notice_of_key("ssh", *rules.ssh_key, failure.what()));
        if (rules.signing_key) none.notices.push_back(notice_of_key("signing", *rules.signing_key, failure.what()));
        return none;
    }
}

void show_ssh_files(const AsRoot & /*root*/, const SessionDirectory &session, const Account &agent, const SshFiles &files)
{
    // Root owns the file, so that the agent cannot change it, and the agent's group may read it. Set before the file has content.
    const auto write_key = [&](const std::string &path, const std::string &content) {
        const UniqueFd key = session.make_file(path);
        if (fchown(key.get(), 0, agent.gid.value()) != 0 || fchmod(key.get(), 0440) != 0) throw_errno("closing the copy of an ssh key");
        write_whole(key, content, "/" + path);
    };
    if (!files.key.empty()) {
        session.make_directory(ssh_inside);
        session.write_file("run/pi-agent/ssh/known_hosts", files.known_hosts);
        session.write_file("run/pi-agent/ssh/config", ssh_settings);
        write_key("run/pi-agent/ssh/key", files.key);
    }
    if (files.signing_key.empty()) return;
    session.make_directory("run/pi-agent/signing");
    write_key("run/pi-agent/signing/key", files.signing_key);
}

void name_ssh_command(EnvironmentInput &environment)
{
    environment.defaults["GIT_SSH_COMMAND"] = {"ssh -F /run/pi-agent/ssh/config", "users.NAME.ssh"};
}

void name_signing_key(EnvironmentInput &environment)
{
    add_git_settings(environment, {{"gpg.format", "ssh"}, {"user.signingKey", "/run/pi-agent/signing/key"}}, "users.NAME.signing");
}

std::string ask_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request)
{
    if (request.tmpdir.empty()) return "";
    const UniqueFd &top = project.shown.directory;
    std::string place = place_of_tmpdir(request.tmpdir, project.shown.path(), project.below);
    ask<Done>(root, {"maker of the temporary directory", caller, {top.get()}}, [&](const AsUser & /*user*/) {
        fault_point("making-tmpdir");
        make_user_tmpdir(caller, top, place, request.umask);
        return Done{};
    });
    return place;
}

HostFilesReader::HostFilesReader(const AsRoot &root, const Account &agent, const HostView &view) : view_(view)
{
    if (view.view == View::host) return;
    child_.emplace(root, "reader of the host's /etc", agent, std::vector<int>{}, [](const AsUser & /*agent*/, FdRef channel) {
        fault_point("reading-etc");
        for (const auto &name : shown_etc_files())
            send_long_answer(channel, encode(read_etc_file(name)));
        send_long_answer(channel, encode(find_unchanged_files()));
    });
}

std::vector<std::string> HostFilesReader::show(const SessionDirectory &session, const std::vector<std::string> &left_out)
{
    std::vector<std::string> notices, links;
    if (!child_) return notices;
    for (const auto &name : shown_etc_files()) {
        const auto file = decode_fields<EtcFile>(child_->receive_long(child_patience_seconds));
        if (file.state == EtcFileState::too_large)
            notices.push_back("not shown to the agent: /etc/" + name + " (larger than " + std::to_string(host_file_limit >> 20U) +
                              " MiB); the policy's view_paths can show it");
        if (file.state != EtcFileState::read) continue;
        const std::string own = "/etc/" + name;
        if (is_shown(view_, own) || view_.links.contains(own)) continue; // view_paths
        if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
        if (file.target != own && is_shown(view_, file.target) && !session.has("root" + own)) // programs look at where localtime leads
            session.make_link("root" + own, file.target);
        else
            write_whole(session.make_late_file("root" + own), file.content, "the session's " + own);
    }
    const auto unchanged = decode_fields<UnchangedFiles>(child_->receive_long(child_patience_seconds));
    for (const auto &path : unchanged.paths)
        if (shown_of_etc(path) == ShownOfEtc::nothing && !session.has("root/etc/" + path.substr(0, path.find('/')))) links.push_back(path);
    for (const auto &path : links) // later: the first link of a directory would hide the others
        session.make_link("root/etc/" + path, std::string(package_files_directory) + "/" + path);
    child_.reset();
    return notices;
}

// --- Has a child, as the caller, ask git; writes git's configuration for the session.

void add_git_settings(EnvironmentInput &environment, const std::vector<std::pair<std::string, std::string>> &settings,
                      const std::string &from)
{
    std::size_t count = 0;
    for (const auto &[name, value] : settings) {
        const std::string number = std::to_string(count++);
        environment.defaults["GIT_CONFIG_KEY_" + number] = {name, from};
        environment.defaults["GIT_CONFIG_VALUE_" + number] = {value, from};
    }
    environment.defaults["GIT_CONFIG_COUNT"] = {std::to_string(count), from};
}

void name_git_config(EnvironmentInput &environment)
{
    // The lowest in git's order: the agent's ~/.gitconfig and the repository's settings win over it. GIT_AUTHOR_NAME and GIT_CONFIG_COUNT
    // win over both.
    environment.defaults["GIT_CONFIG_SYSTEM"] = {"/run/pi-agent/gitconfig", "settings for git in a session, git_identity among them"};
}

void leave_commits_unsigned(EnvironmentInput &environment)
{
    add_git_settings(environment, {{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"tag.forceSignAnnotated", "false"}},
                     "the repository signs commits, and the session has no key");
}

GitIdentityReader::GitIdentityReader(const AsRoot &root, const Account &user, const OpenedProject &project, const HostView &view,
                                     const AgentPlaces &agents, bool wanted, const std::string &repository)
{
    if (!wanted) return;
    const Deadline deadline = in_seconds(defence_is_on("git-deadline") ? git_patience_seconds : 600);
    deadline_ = deadline + std::chrono::seconds(1); // the child gives up first, and says why
    GitPlace place{{project.shown.directory, project.shown.path()}, project.below, project.repository, {}, repository};
    place.inside = project.shown.inside;
    place.is_guarded = !project.policy.projects.protect;
    for (const auto &mask : project.policy.projects.mask)
        place.masks.push_back(mask.path);
    place.is_there = [&](const std::string &path) {
        const auto &readable = project.policy.toolchains.readable.paths;
        return is_shown(view, path) || is_within(path, project.shown.path()) ||
               std::any_of(readable.begin(), readable.end(), [&](const PolicyPath &one) {
                   return is_within(path, one.path.starts_with('/') ? one.path : join_path(user.home, one.path));
               });
    };
    if (!project.git_directories.empty())
        place.git_directory = GuardedTree{project.git_directories.back().directory, project.git_directories.back().path()};
    std::vector<int> keep{project.shown.directory.get()};
    for (const auto &other : project.git_directories)
        keep.push_back(other.directory.get());
    try {
        child_.emplace(
            root, "reader of the git identity", user, keep,
            [&, deadline](const AsUser &self, FdRef channel) {
                fault_point("reading-git-id");
                send_long_answer(channel, encode(find_for_session(self, user, place, agents, deadline)));
            },
            Descendants::end_with_it);
    } catch (const SystemFailure &failure) { // not a reason to refuse a session
        problem_ = failure.what();
    }
}

GitOfUser GitIdentityReader::receive(const SessionWatch &watch)
{
    GitOfUser found;
    found.problem = "its files were not read in time";
    while (!watch.wait({child_->channel()}, deadline_)) // at least once: the config sync may have taken longer, and the answer is there
        if (Clock::now() >= deadline_) return found;
    try {
        return decode_fields<GitOfUser>(child_->receive_long(git_patience_seconds));
    } catch (const Failure &failure) { // not a reason to refuse a session
        found.problem = failure.what();
        return found;
    }
}

GitNotices GitIdentityReader::show(const SessionDirectory &session, const SessionWatch &watch, RepositoryConfig config, bool has_key)
{
    GitOfUser found;
    found.problem = problem_;
    if (child_) found = receive(watch);
    child_.reset();
    GitNotices notices = std::move(found.notices);
    if (has_key) notices.unsigned_for = GitSigning::none; // so the session leaves nothing unsigned
    session.make_directory("run/pi-agent");
    session.write_file("run/pi-agent/gitconfig", git_defaults(config) + found.config + (has_key ? found.signing : ""));
    if (!found.files.empty()) session.make_directory("run/pi-agent/git");
    for (const auto &[copy, content] : found.files)
        session.write_file(git_file_inside(copy).substr(1), content);
    if (notices.unsigned_for != GitSigning::none) notices.once.push_back(found.unsigned_notice);
    if (!found.problem.empty())
        notices.always.push_back("git: the agent's commits do not carry your name and address: " + found.problem +
                                 "; it can still commit with a user.name and user.email of its own");
    return notices;
}

} // namespace pi_agent
