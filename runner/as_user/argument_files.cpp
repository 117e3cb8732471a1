// Copies of the files that the user names on the command line, made as the user; and what else is named that a session does not have.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/writer.hpp"

namespace pi_agent {

namespace {

constexpr int copied_levels = 40;

std::size_t copies_size()
{
    return defence_is_on("copies-limit") ? copies_size_limit : std::size_t{1} << 30U;
}

[[noreturn]] void refuse_copy(const std::string &path, const std::string &why)
{
    throw Failure(FailureKind::named_file, escape_for_display(path) + " of your arguments is not handed to the agent: " + why);
}

class Copying {
public:
    Copying(const UserPaths &paths, FdRef copies) : paths_(paths), copies_(copies) {}

    void add(std::size_t number, const std::string &path, const UserPlacePtr &place)
    {
        named_ = &path;
        const UniqueFd directory = make_directory(copies_, std::to_string(number));
        const std::string name = path.substr(path.rfind('/') + 1);
        if (S_ISDIR(place->facts.st_mode)) return copy_tree(place, directory, name, 0);
        copy_file(open_host_file(*place), directory, name);
    }

    [[nodiscard]] std::vector<std::string> notices() const { return notices_; }

private:
    UniqueFd make_directory(FdRef above, const std::string &name)
    {
        count();
        if (mkdirat(above.get(), name.c_str(), 0755) != 0) throw_errno("copying " + escape_for_display(*named_));
        UniqueFd directory = open_or_throw("copying " + escape_for_display(*named_), above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (fchmod(directory.get(), 0755) != 0) throw_errno("copying " + escape_for_display(*named_)); // whatever the umask
        return directory;
    }

    void count()
    {
        if (++count_ > copies_count_limit)
            refuse_copy(*named_, "with it, your arguments name more than " + std::to_string(copies_count_limit) +
                                     " files and directories; move it into the project");
    }

    void copy_file(const HostFile &file, FdRef into, const std::string &name)
    {
        if (!file.fd) refuse_copy(*named_, file.problem);
        count();
        if (file.facts.size > copies_size() - size_)
            refuse_copy(*named_, "with it, your arguments name more than " + std::to_string(copies_size_limit >> 20U) +
                                     " MiB; move it into the project");
        const std::string content = read_whole(file.fd, copies_size() - size_, escape_for_display(*named_));
        size_ += content.size();
        const mode_t mode = (file.facts.mode & 0111U) != 0 ? 0555 : 0444;
        const UniqueFd copy =
            open_or_throw("copying " + escape_for_display(*named_), into, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        write_whole(copy, content, "a copy of " + escape_for_display(*named_));
        if (fchmod(copy.get(), mode) != 0) throw_errno("copying " + escape_for_display(*named_));
    }

    void copy_tree(const UserPlacePtr &place, FdRef above, const std::string &name, int depth)
    {
        if (depth > copied_levels) refuse_copy(*named_, "its directories are nested too deep");
        if (is_kernels(place->fd)) refuse_copy(*named_, "the kernel makes that directory");
        DirectoryStream stream(open_to_list(*place));
        if (!stream) refuse_copy(*named_, SystemFailure(errno, "opening").what());
        const UniqueFd directory = make_directory(above, name);
        while (const dirent *entry = stream.next())
            copy_entry(place, directory, entry->d_name, depth);
        if (errno != 0) refuse_copy(*named_, SystemFailure(errno, "reading").what());
    }

    void copy_entry(const UserPlacePtr &place, FdRef into, const std::string &name, int depth)
    {
        const std::string target = read_link(place->fd, name);
        // A symlink to something beside it stays one: a program that finds its parts through symlinks finds them in the copy too.
        if (!target.empty() && target.front() != '/' && !leads_above(target, depth)) {
            count();
            if (symlinkat(target.c_str(), into.get(), name.c_str()) != 0) throw_errno("copying " + escape_for_display(*named_));
            return;
        }
        const UserPlacePtr inner = follow(place, name);
        if (!inner) return;
        if (S_ISDIR(inner->facts.st_mode)) return copy_tree(inner, into, name, depth + 1);
        if (!S_ISREG(inner->facts.st_mode)) return leave_out(place->path + "/" + name, no_regular_file);
        copy_file(open_host_file(*inner), into, name);
    }

    // None for what is left out: a symlink that leads out of where agents write, a symlink to nothing, or an entry that is gone.
    UserPlacePtr follow(const UserPlacePtr &place, const std::string &name)
    {
        try {
            return paths_.follow(place, name);
        } catch (const Failure &refusal) {
            leave_out(place->path + "/" + name, refusal.what());
            return nullptr;
        }
    }

    void leave_out(const std::string &path, const std::string &why)
    {
        if (notices_.size() + 1 < HandedFiles::handed_notices_limit)
            notices_.push_back(escape_for_display(path) + " is not copied for the agent: " + why);
    }

    const UserPaths &paths_;
    FdRef copies_;
    const std::string *named_ = nullptr;
    std::size_t size_ = 0;
    std::size_t count_ = 0;
    std::vector<std::string> notices_;
};

Handed hand_one_over(const UserPaths &paths, const ArgumentFile &file, std::size_t number, const ShownPlaces &shown, Copying &copying,
                     std::vector<std::string> &notices)
{
    const bool seen = is_there_inside(shown, file.path);
    if (file.as == NamedAs::place) {
        if (seen || is_within(file.path, "/tmp")) return Handed::shown;
        refuse_copy(file.path,
                    "the agent would write there, which it cannot do outside the project; name a directory of the project, or leave "
                    "the option out, and sessions are kept in the agent's home");
    }
    // The kernel makes these for a process. This one does not have the shell's descriptors (`<(…)`), and /proc shows it root's processes.
    if (is_within(file.path, "/proc") || is_within(file.path, "/dev/fd"))
        refuse_copy(file.path, "it belongs to a process outside the sandbox; pass it on standard input, or write it to a file first");
    try {
        const UserPlacePtr place = paths.follow(file.path);
        if (seen && is_there_inside(shown, place->path)) return Handed::shown;
        const bool is_directory = S_ISDIR(place->facts.st_mode);
        if (is_directory && file.as == NamedAs::text) return Handed::left;
        if (is_directory && file.as != NamedAs::tree)
            refuse_copy(file.path, "it is a directory; move it into the project, or name its files");
        if (file.as == NamedAs::written)
            refuse_copy(file.path, "the agent would write to it, which it cannot do outside the project; --fork continues with a copy");
        copying.add(number, file.path, place);
        return Handed::copied;
    } catch (const NotFollowed &refusal) {
        if (!refusal.leads_out() && (seen || file.as == NamedAs::text)) return Handed::left; // e.g. it does not exist
        if (!seen) refuse_copy(file.path, refusal.what());
        notices.push_back(escape_for_display(file.path) + " of your arguments is not handed to the agent: " + refusal.what());
        return Handed::left; // as far as the session sees it
    } catch (const SystemFailure &failure) {
        const int problem = failure.error_number();
        if (seen || problem == ENOENT || problem == ENOTDIR || file.as == NamedAs::text) return Handed::left;
        refuse_copy(file.path, failure.what());
    }
}

// --- What the user's settings, models and servers, and links of the project, name that a session does not have.

using nlohmann::json;

constexpr std::size_t notices_at_most = 10;
constexpr std::size_t notice_limit = 1024;                // bytes
constexpr std::size_t look_limit = std::size_t{1} << 20U; // bytes of a file
constexpr const char *not_there = ", which a session does not have";

// The name in "$NAME" or "${NAME}"; empty for any other text.
std::string variable_in(std::string_view value)
{
    if (!value.starts_with('$')) return "";
    value.remove_prefix(1);
    if (value.starts_with('{') && value.ends_with('}')) value = value.substr(1, value.size() - 2);
    const bool is_name = std::all_of(value.begin(), value.end(), [](unsigned char byte) { return std::isalnum(byte) != 0 || byte == '_'; });
    return is_name ? std::string(value) : "";
}

// What in a shell's text could be a path.
std::vector<std::string> shell_words(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char byte) { return std::string_view("\t\n;&|()'\"=<>").find(byte) != std::string_view::npos; }, ' ');
    std::vector<std::string> words;
    for (const auto word : split(text, ' '))
        if (!word.empty()) words.emplace_back(word);
    return words;
}

class MissingPlaces {
public:
    explicit MissingPlaces(const ReadingPlan &plan) : places_(plan.places), config_(plan.sources.front().directory), paths_(plan.agents) {}

    std::vector<std::string> name()
    {
        try {
            top_ = paths_.follow(config_);
            look_at_prefix();
            look_at_keys();
            look_at_servers();
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): whoever brings the config in reports it
        }
        for (std::string path = places_.directory; is_within(path, places_.project); path = parent_of(path))
            look_at_links(path);
        return std::move(notices_);
    }

private:
    json read(const char *name, JsonSyntax syntax) const
    {
        try {
            const HostFile file = open_host_file(paths_, top_, name);
            return file.fd ? parse_json_object(read_whole(file.fd, look_limit, name), name, syntax) : json::object();
        } catch (const Failure &) { // whoever brings it in reports it
            return json::object();
        }
    }

    void tell(const std::string &name, const std::string &what)
    {
        if (notices_.size() < notices_at_most)
            notices_.push_back("config: " + escape_for_display(config_ + "/" + name) + ": " +
                               escape_for_display(what.substr(0, notice_limit)));
    }

    // A path outside of what a session has. Below the config directory "~" works on both sides.
    [[nodiscard]] bool is_missing(const std::string &word) const
    {
        for (const std::string_view home : {"~/", "$HOME/", "${HOME}/"})
            if (word.starts_with(home)) return !std::string_view(word).substr(home.size()).starts_with(agent_directory);
        return word.starts_with('/') && word.size() > 1 && !places_.is_there(resolved_by_text(word));
    }

    void look_at_prefix()
    {
        const json settings = read("settings.json", JsonSyntax::strict);
        const auto prefix = settings.find("shellCommandPrefix");
        if (prefix == settings.end() || !prefix->is_string()) return;
        for (const auto &word : shell_words(prefix->get<std::string>()))
            if (is_missing(word))
                tell("settings.json", "shellCommandPrefix names " + word + not_there +
                                          "; move it into ~/.pi/agent, and name it by that path, which leads there on both sides");
    }

    void look_at_keys()
    {
        const json models = read("models.json", JsonSyntax::with_comments);
        const auto providers = models.find("providers");
        if (providers == models.end() || !providers->is_object()) return;
        for (const auto &item : providers->items()) {
            const json key = item.value().is_object() ? item.value().value("apiKey", json()) : json();
            if (key.is_string() && !places_.held_providers.contains(item.key())) look_at_key(item.key(), key.get<std::string>());
        }
    }

    void look_at_key(const std::string &provider, const std::string &key)
    {
        const std::string file = places_.env_files.empty() ? "" : places_.env_files.front();
        const std::string remedy = file.empty() ? "ask the administrator for the key in env_files"
                                                : "write the key into " + (file.front() == '/' ? file : "~/" + file) +
                                                      ", a file that you alone can read (mode 0600)";
        if (key.starts_with('!'))
            return tell("models.json", "the apiKey of " + provider +
                                           " is a command, which a session runs without your home, keyring and "
                                           "agents' sockets; if it needs them, name a variable (\"$NAME\") instead, and " +
                                           remedy);
        if (const std::string variable = variable_in(key); !variable.empty() && !has_variable(variable))
            tell("models.json", "the apiKey of " + provider + " is the variable " + variable +
                                    ", which a session does not get from your shell; " + remedy);
    }

    [[nodiscard]] bool has_variable(const std::string &name) const
    {
        if (places_.variables.contains(name)) return true;
        try {
            const HostVariables own = read_host_env_files(paths_, places_.env_files, places_.home);
            return std::any_of(own.assignments.begin(), own.assignments.end(), [&](const auto &one) { return one.name == name; });
        } catch (const Failure &) { // the start reads these files, too, and reports it
            return true;
        }
    }

    void look_at_servers()
    {
        const json file = read("mcp.json", JsonSyntax::with_comments);
        const auto servers = file.find("mcpServers");
        if (servers == file.end() || !servers->is_object()) return;
        for (const auto &item : servers->items()) {
            const json command = item.value().is_object() ? item.value().value("command", json()) : json();
            if (command.is_string() && is_missing(command.get<std::string>()))
                tell("mcp.json", "the server " + item.key() + " is " + command.get<std::string>() + not_there +
                                     "; ask the administrator to show it (users.NAME.readable), or install it in a session");
        }
    }

    void look_at_links(const std::string &directory)
    {
        try {
            const UserPlacePtr place = paths_.follow(directory);
            for (const char *name : {"AGENTS.md", "AGENTS.override.md", "CLAUDE.md", ".pi", ".agents"})
                look_at_link(directory, name, read_link(place->fd, name));
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): where nothing was found, nothing is told
        }
    }

    // By its text: what it leads to is not looked at.
    void look_at_link(const std::string &directory, const std::string &name, const std::string &target)
    {
        if (target.empty()) return;
        const std::string path = resolved_by_text(target.front() == '/' ? target : directory + "/" + target);
        if (is_within(path, places_.project) || places_.is_there(path) || notices_.size() >= notices_at_most) return;
        notices_.push_back(escape_for_display(directory + "/" + name) + " is a link to " + escape_for_display(path) + not_there +
                           (name.ends_with(".md")
                                ? "; copy it into the project, or start with: pi --append-system-prompt " + escape_for_display(path)
                                : "; copy it into the project"));
    }

    const SessionPlaces &places_;
    const std::string &config_;
    UserPaths paths_;
    UserPlacePtr top_;
    std::vector<std::string> notices_;
};

} // namespace

HandedFiles copy_named_files(const UserPaths &paths, const std::vector<ArgumentFile> &files, const ShownPlaces &shown, FdRef copies)
{
    HandedFiles handed;
    std::vector<std::string> notices;
    Copying copying(paths, copies);
    for (std::size_t index = 0; index < files.size(); ++index)
        handed.states += static_cast<char>(hand_one_over(paths, files[index], index + 1, shown, copying, notices));
    for (const auto &more : {notices, copying.notices()})
        for (const auto &notice : more)
            if (handed.notices.size() < HandedFiles::handed_notices_limit) handed.notices.push_back(notice);
    return handed;
}

std::vector<std::string> name_missing_places(const ReadingPlan &plan)
{
    return plan.places.is_there ? MissingPlaces(plan).name() : std::vector<std::string>{};
}

} // namespace pi_agent
