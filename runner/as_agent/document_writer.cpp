// Takes the agent's own lock; reads, merges and writes documents.

#include "common/base/files.hpp"
#include "runner/as_agent/writer.hpp"

#include <thread>

namespace pi_agent {

namespace {

constexpr int beyond_stale_seconds = 2;

int stale_seconds(const std::string &name) noexcept
{
    return name == "auth.json" ? 30 : 10;
}

// A time in the future does not count as a sign of life either: a lock with one could never be called stale.
bool is_fresh(FdRef directory, const std::string &lock_name, int seconds)
{
    struct stat facts {};
    if (fstatat(directory.get(), lock_name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("looking at " + lock_name + " in the agent's home");
        return false;
    }
    const std::time_t age = std::time(nullptr) - facts.st_mtim.tv_sec;
    return age <= seconds && age >= -seconds;
}

// Removes the lock without what is in it: the agent decides how much and how deep that is.
void take_away(FdRef directory, const std::string &lock_name)
{
    if (unlinkat(directory.get(), lock_name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return;
    if (errno == ENOTDIR && (unlinkat(directory.get(), lock_name.c_str(), 0) == 0 || errno == ENOENT)) return;
    set_aside(directory, lock_name);
}

using nlohmann::json;

constexpr std::size_t document_limit = 4UL * 1024 * 1024;
constexpr std::size_t locked_limit = 256UL * 1024;
constexpr std::size_t document_notice_limit = 20;
constexpr int torn_attempts = 10;
constexpr auto torn_pause = std::chrono::milliseconds(20);

JsonSyntax syntax_of(const std::string &name) noexcept
{
    return name == "models.json" ? JsonSyntax::with_comments : JsonSyntax::strict;
}

bool is_credentials(const std::string &name) noexcept
{
    return name == "auth.json" || name == "mcp-auth.json";
}

// pi truncates and rewrites in place: a document that does not parse is read again before it counts as wrong.
json read_document(FdRef file, const std::string &name, const std::string &place, FdRef channel)
{
    for (int attempt = 1;; ++attempt) {
        try {
            return parse_json_object(read_whole(file, document_limit, place), place, syntax_of(name));
        } catch (const Failure &) {
            if (attempt >= torn_attempts) throw;
        }
        send_progress(channel);
        std::this_thread::sleep_for(torn_pause);
    }
}

std::string as_text(const json &document)
{
    return dump_with_numbers(document, 2) + "\n";
}

// Does not wait: a process that writes the file in the agent's home holds its lock, and then it is read again under that lock.
InsideDocument read_inside(FdRef directory, const std::string &name)
{
    const UniqueFd fd = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat facts {};
    if (!fd) return {std::nullopt, errno != ENOENT};
    if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {std::nullopt, true};
    try {
        return {parse_json_object(read_whole(fd, document_limit, name), name, syntax_of(name)), false};
    } catch (const Failure &) {
        if (!defence_is_on("broken-inside")) throw;
        return {std::nullopt, true};
    }
}

// Where sessions have a mount over a file, a rename onto it from out here takes that mount away in all of them (rename(2) says EBUSY only
// to callers inside). False when `name` is not a file with this one name.
bool write_in_place(FdRef directory, const std::string &name, const std::string &text)
{
    const UniqueFd fd = open_at(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat facts {};
    if (!fd || fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1) return false;
    if (ftruncate(fd.get(), 0) != 0) throw_errno("emptying the agent's " + name);
    write_whole(fd, text, "the agent's " + name); // when a kill interrupts this, the next start restores the file
    return true;
}

std::optional<json> parse_base(const std::string &text)
{
    json document = json::parse(mark_numbers(text).text, nullptr, false);
    return document.is_object() ? std::optional<json>(std::move(document)) : std::nullopt;
}

} // namespace

bool is_locked_by_agent(FdRef directory, const std::string &name)
{
    return is_fresh(directory, name + ".lock", stale_seconds(name));
}

AgentLock::AgentLock(FdRef directory, const std::string &name, FdRef channel) : directory_(directory), lock_name_(name + ".lock")
{
    const int seconds = stale_seconds(name);
    const Deadline deadline = in_seconds(seconds + beyond_stale_seconds);
    while (mkdirat(directory.get(), lock_name_.c_str(), 0700) != 0) {
        if (errno != EEXIST) throw_errno("locking " + name + " in the agent's home");
        if (Clock::now() >= deadline)
            throw Failure(FailureKind::busy, "another session of yours keeps " + name + " locked (" + lock_name_ +
                                                 " in its config directory); end that session, then try again");
        if (!is_fresh(directory, lock_name_, seconds)) {
            take_away(directory, lock_name_);
            continue;
        }
        send_progress(channel);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

AgentLock::~AgentLock()
{
    unlinkat(directory_.get(), lock_name_.c_str(), AT_REMOVEDIR); // best_effort: what is left is stale in seconds
}

DocumentWriter::DocumentWriter(const WritingPlan &plan, FdRef locked_settings, FdRef channel)
    : plan_(plan), locked_settings_(locked_settings), channel_(channel), managed_providers_(plan.managed_providers)
{
    if (const auto models = plan.documents.find("models.json"); models != plan.documents.end())
        for (const auto &provider : providers_with_keys(parse_json_object(models->second.managed, "the managed models")))
            managed_providers_.insert(provider);
    std::set_difference(managed_providers_.begin(), managed_providers_.end(), plan.held_providers.begin(), plan.held_providers.end(),
                        std::inserter(given_providers_, given_providers_.begin()));
}

void DocumentWriter::take_host(const SyncMessage &document, FdRef file)
{
    const std::string &name = document.name;
    if (!plan_.documents.contains(name)) throw ProtocolError("the reader of the config sent a document that nobody merges");
    places_[name] = document.place;
    if (file.get() < 0) return;
    const std::string place = escape_for_display(document.place);
    try {
        hosts_[name] = read_document(file, name, place, channel_);
        if (name == "settings.json" && plan_.is_there) leave_places_out(hosts_[name], place);
    } catch (const Failure &failure) {
        if (failure.status() != ExitStatus::configuration) throw;
        // A file that agents can write must not stop anybody from starting an agent: agents could also have removed it.
        if (!document.by_agents || !defence_is_on("agents-documents"))
            throw Failure(FailureKind::user_configuration, std::string(failure.what()) + "; nothing was changed");
        send_answer(channel_, "config: " + place + " is left out: " + failure.what());
    }
}

std::string DocumentWriter::name_of(const std::string &path)
{
    const auto [directory, name] = split_last(path);
    return directory == agent_directory ? name : "";
}

bool DocumentWriter::merges(const std::string &name) const
{
    if (name == "settings.json" || is_credentials(name) || hosts_.contains(name)) return true;
    const auto rule = plan_.documents.find(name);
    return rule != plan_.documents.end() && (rule->second.is_alone || rule->second.managed != DocumentRule{}.managed);
}

DocumentWriter::Merged DocumentWriter::merge(const std::string &name, const DocumentVersions &versions) const
{
    const FileClass file_class = plan_.classes.of(name);
    if (is_credentials(name)) {
        json merged = merge_credentials(name, file_class, versions, given_providers_);
        return {merged, merged};
    }
    const DocumentRule &rule = plan_.documents.at(name);
    json chosen = rule.is_alone ? json::object() : merge_document(name, file_class, versions);
    json document = merge_managed(chosen, parse_json_object(rule.managed, "the managed " + name));
    return {std::move(chosen), std::move(document)};
}

void DocumentWriter::write(FdRef directory, FdRef staging, Manifest &manifest)
{
    for (const auto &document : plan_.documents)
        if (merges(document.first)) write_one(document.first, directory, staging, manifest);
}

DocumentVersions DocumentWriter::versions_before(const std::string &name, const DocumentBase *base) const
{
    DocumentVersions versions;
    if (const auto host = hosts_.find(name); host != hosts_.end()) versions.host = host->second;
    if (name == "models.json") versions.host = without_keys(std::move(versions.host), managed_providers_);
    if (name == "auth.json") versions.host = without_keys_of(std::move(versions.host), plan_.held_providers);
    if (base == nullptr) return versions;
    versions.base_host = parse_base(base->host);
    versions.base_chosen = parse_base(base->chosen);
    versions.base_written = parse_base(base->written);
    return versions;
}

DocumentWriter::Merged DocumentWriter::merge_with(const InsideDocument &inside, const std::string &name, DocumentVersions versions) const
{
    versions.inside = inside.document;
    // Half written, e.g. the agent was killed while it wrote: take what it had at the last sync.
    if (inside.is_broken) versions.inside = versions.base_written;
    if (name == "auth.json" && versions.inside) versions.inside = without_keys_of(std::move(*versions.inside), plan_.held_providers);
    if (!versions.inside) versions.forget_base(); // nothing was deleted key by key
    send_progress(channel_);                      // each of these steps may take a second for the largest document, and more on a busy host
    Merged merged = merge(name, versions);
    send_progress(channel_);
    return merged;
}

void DocumentWriter::put(const std::string &name, const std::string &text, FdRef directory, FdRef staging) const
{
    const bool is_locked = name == "settings.json" ? locked_settings_.get() >= 0 : plan_.documents.at(name).is_alone;
    if (is_locked && write_in_place(directory, name, text)) return;
    Replacement file(staging, 0600);
    write_whole(file.fd(), text, "the agent's " + name);
    file.make_durable();
    if (const std::string kept = file.commit(directory, name); !kept.empty())
        send_answer(channel_, "config: a directory was where the agent's " + name + " belongs; it is kept beside it as " + kept);
}

void DocumentWriter::write_one(const std::string &name, FdRef directory, FdRef staging, Manifest &manifest)
{
    const DocumentBase *base = manifest.document(name);
    const DocumentVersions versions = versions_before(name, base);
    const bool is_settings = name == "settings.json";
    InsideDocument inside = read_inside(directory, name);
    Merged merged = merge_with(inside, name, versions);
    const bool is_to_mend = inside.is_broken && is_credentials(name);         // the agent cannot log in over one that does not parse
    const bool is_the_hosts = hosts_.contains(name) && !is_credentials(name); // even an empty one
    const bool is_wanted = inside.document || is_to_mend || !merged.document.empty() || is_settings || is_the_hosts ||
                           plan_.documents.at(name).is_alone; // something must be there to lock
    if (is_wanted && (!inside.document || *inside.document != merged.document)) {
        const AgentLock lock(directory, name, channel_);
        inside = read_inside(directory, name);
        merged = merge_with(inside, name, versions);
        if (inside.is_broken && is_credentials(name))
            send_answer(channel_, "config: the agent's " + name + " was not valid; it is kept beside it as " + set_aside(directory, name));
        put(name, as_text(merged.document), directory, staging);
    }
    if (is_settings) packages_ = packages_of(merged.document);
    if (is_settings) name_paths_that_leave(merged.document);
    if (is_settings && locked_settings_.get() >= 0) write_locked(merged.document, versions);

    // A document only because the policy manages it: when the policy stops, the file inside counts as one that was synced.
    const std::string path = std::string(agent_directory) + "/" + name;
    if (is_wanted && !is_settings && !is_credentials(name) && manifest.find(path) == nullptr) manifest.intend(path, false);

    // Does not record what did not count: an entry that a managed key replaced, or a host file whose class says that it is not copied. When
    // it counts again it is new.
    json host = is_copied(plan_.classes.of(name)) ? versions.host : json::object();
    if (name == "auth.json")
        for (const auto &provider : given_providers_)
            host.erase(provider);
    const DocumentBase now{dump_with_numbers(host), dump_with_numbers(merged.chosen), dump_with_numbers(merged.document)};
    if (base == nullptr || *base != now) manifest.set_document(name, now);
    manifest.flush(); // now: otherwise the host's version would win once more over what the agent does in between
}

void DocumentWriter::write_locked(const json &merged, DocumentVersions without_agents)
{
    std::string text = as_text(merged);
    if (text.size() > locked_limit) {
        without_agents.inside = std::nullopt;
        without_agents.forget_base();
        text = as_text(merge("settings.json", without_agents).document);
        send_answer(channel_,
                    "config: what the agent added to its settings.json is too large to be locked (policy: settings_lock), and left out");
    }
    // The locked settings occupy memory that all sessions share.
    if (text.size() > locked_limit && defence_is_on("locked-limit"))
        throw Failure(FailureKind::user_configuration, "your settings.json is larger than " + std::to_string(locked_limit) +
                                                           " bytes, the most that the policy can lock (settings_lock); make it smaller");
    write_whole(locked_settings_, text, "the locked settings");
}

void DocumentWriter::name_paths_that_leave(const json &settings)
{
    const auto place = places_.find("settings.json");
    const auto rule = plan_.documents.find("settings.json");
    const auto managed = paths_that_leave(parse_json_object(rule->second.managed, "the managed settings.json"));
    std::size_t count = 0;
    for (const auto &path : paths_that_leave(settings)) {
        if (std::find(managed.begin(), managed.end(), path) != managed.end()) continue; // from the policy, so not a mistake of the user's
        if (++count > document_notice_limit) break; // the agent writes this file too: it decides neither how many there are nor how long
        send_answer(channel_, "config: " + (place == places_.end() ? "settings.json" : escape_for_display(place->second)) + ": " +
                                  escape_for_display(path.substr(0, 1024)) +
                                  " is outside the config directory: inside the sandbox this is another place; move it into the config "
                                  "directory and name it relative to that");
    }
}

// A shell that a session lacks fails each command, and a place of sessions each start. Without the setting the agent has its own.
void DocumentWriter::leave_places_out(json &settings, const std::string &place) const
{
    constexpr std::pair<const char *, const char *> keys[] = {
        {"shellPath", "so the agent's commands run in bash; name a shell of the host, such as one in /usr/bin"},
        {"sessionDir", "so the agent keeps its sessions in its own home; name a directory of the project, or one in ~"},
    };
    for (const auto &[key, consequence] : keys) {
        const auto setting = settings.find(key);
        const std::string path = setting != settings.end() && setting->is_string() ? setting->get<std::string>() : "";
        const bool is_own = path.starts_with('~') && (std::string_view(key) == "sessionDir" || path.starts_with("~/.pi/agent/"));
        if (is_own || (!path.starts_with('~') && !path.starts_with('/')) || plan_.is_there(resolved_by_text(path))) continue;
        settings.erase(setting);
        send_answer(channel_, std::string(answer_told_once) + "config: " + place + ": " + key + ": " +
                                  escape_for_display(path.substr(0, 1024)) + ", which a session does not have, " + consequence);
    }
}

} // namespace pi_agent
