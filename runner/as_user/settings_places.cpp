// What the user's settings, models and servers, and links of the project, name that a session does not have.
#include "runner/as_user/reader.hpp"

#include "common/base/files.hpp"
#include "runner/as_agent/documents.hpp"

namespace pi_agent {

namespace {

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
        const std::string variable = variable_in(key);
        if (!variable.empty() && !has_variable(variable))
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

std::vector<std::string> name_missing_places(const ReadingPlan &plan)
{
    return plan.places.is_there ? MissingPlaces(plan).name() : std::vector<std::string>{};
}

} // namespace pi_agent
