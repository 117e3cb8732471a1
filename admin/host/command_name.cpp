// Another name of the command is a symlink to `pi`; its completions and its page lead to those of `pi`.
#include "admin/host/command_name.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t names_note_limit = std::size_t{64} << 10U;
constexpr mode_t part_mode = 0644;
constexpr mode_t names_note_mode = 0600;

using CommandNames = std::set<std::string>;

// One file or symlink of a name.
struct Part {
    std::string directory;
    std::string name;
    std::string text; // of the file, or where the symlink leads
    bool is_link = false;
    std::string own; // the file of `pi` there, without which there is nothing to lead to

    [[nodiscard]] std::string path() const { return directory + "/" + name; }
};

// The symlink first.
std::vector<Part> parts_of(const std::string &command, const CommandPlaces &places)
{
    const auto [directory, wrapper] = split_last(places.wrapper);
    const std::string made = "# Made by pi-agentctl apply: the policy calls the command " + command + ".\n";
    const std::string bash = places.data + "/bash-completion/completions";
    std::vector<Part> parts = {
        {directory, command, wrapper, true, wrapper},
        {bash, command, made + ". " + bash + "/" + wrapper + "\ncomplete -F _pi_of_pi_agent " + command + "\n", false, wrapper},
        {places.data + "/fish/vendor_completions.d", command + ".fish", made + "complete -c " + command + " -w " + wrapper + "\n", false,
         wrapper + ".fish"}};
    for (const char *zsh : {"/zsh/vendor-completions", "/zsh/site-functions"}) // Debian has its own place
        parts.push_back(
            {places.data + zsh, "_" + command, "#compdef " + command + "\n" + made + "_" + wrapper + " \"$@\"\n", false, "_" + wrapper});
    for (const char *page : {"pi.1.gz", "pi.1"})
        parts.push_back({places.data + "/man/man1", command + ".1", ".so man1/pi.1\n", false, page});
    return parts;
}

enum class Found { nothing, made, other, no_place };

UniqueFd open_directory(const Part &part)
{
    return open_trusted(part.directory, O_RDONLY | O_DIRECTORY, "directory of a name of the command");
}

// Whether this is exactly what apply makes.
bool is_made(FdRef directory, const Part &part, const struct stat &facts)
{
    if (facts.st_uid != 0) return false;
    if (part.is_link) return S_ISLNK(facts.st_mode) && read_link(directory, part.name) == part.text;
    if (!S_ISREG(facts.st_mode) || std::cmp_not_equal(facts.st_size, part.text.size())) return false;
    return read_trusted_file(part.path(), part.text.size(), "file of a name of the command") == part.text;
}

Found look_at_part(const Part &part)
{
    const auto directory = if_there([&] { return open_directory(part); });
    if (!directory || !has_name(directory, part.own, "examining " + part.directory)) return Found::no_place;
    struct stat facts {};
    if (::fstatat(directory.get(), part.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        require_gone("examining " + part.path());
        return Found::nothing;
    }
    return is_made(directory, part, facts) ? Found::made : Found::other;
}

void make_part(const Part &part)
{
    const auto directory = open_directory(part);
    if (!part.is_link) return replace_root_file(directory, part.name, part.text, part_mode, part.path());
    if (::symlinkat(part.text.c_str(), directory.get(), part.name.c_str()) != 0) throw_errno("cannot create " + part.path());
    if (::fsync(directory.get()) != 0) throw_errno("cannot write the directory of " + part.path() + " to disk");
}

void remove_name(const std::string &command, const CommandPlaces &places)
{
    for (const auto &part : parts_of(command, places))
        if (const auto found = look_at_part(part);
            found == Found::made || (found == Found::other && part.is_link && !defence_is_on("own-command-name")))
            remove_root_file(open_directory(part), part.name, part.path());
}

CommandNames read_command_names(const CommandPlaces &places)
{
    const auto text = if_there([&] { return read_trusted_file(places.note, names_note_limit, "list of names of the command"); });
    CommandNames names;
    for (const auto line : split(text, '\n')) {
        if (!is_plain_name(std::string(line))) throw Failure(ExitStatus::configuration, places.note + " is damaged; remove it");
        names.emplace(line);
    }
    return names;
}

void write_command_names(const CommandPlaces &places, const CommandNames &names)
{
    const auto [above, name] = split_last(places.note);
    const auto directory = open_trusted(above, O_RDONLY | O_DIRECTORY, "directory of applied policies");
    if (names.empty()) return remove_root_file(directory, name, places.note);
    std::string text;
    for (const auto &command : names)
        text += command + "\n";
    replace_root_file(directory, name, text, names_note_mode, places.note);
}

std::string problem_of_taken(const Part &link)
{
    return link.path() + " exists already, and is not a name of pi";
}

} // namespace

CommandPlaces places_of_command()
{
    return {build::wrapper_path, parent_of(parent_of(build::agents_path)), path_of_applied(command_note)};
}

void check_command_name(const Policy &policy, const CommandPlaces &places, Problems &problems)
{
    const auto &wrapper = policy.wrapper;
    const auto report = [&](const std::string &problem, const std::string &remedy) {
        problems.add(wrapper.command_name_where, "wrapper.command_name", problem, remedy);
    };
    if (wrapper.command_name == split_last(places.wrapper).second) return;
    if (build::is_system_managed)
        return report("the command of this system is called " + split_last(places.wrapper).second,
                      "change the name in the configuration of the system");
    try {
        const auto link = parts_of(wrapper.command_name, places).front();
        if (look_at_part(link) == Found::other) report(problem_of_taken(link), "choose another name, or move it away");
    } catch (const Failure &failure) {
        report(failure.what(), "");
    }
}

void install_command(const AsRoot & /*root*/, const std::string &name, const CommandPlaces &places, Changes &changes)
{
    const CommandNames noted = read_command_names(places);
    CommandNames left = noted;
    const auto parts = parts_of(name, places);
    const auto link = look_at_part(parts.front());
    const bool is_theirs = link == Found::made && !noted.contains(name); // the administrator made the same symlink, and keeps it
    if (name != split_last(places.wrapper).second && !is_theirs) {
        if (link == Found::other) throw Failure(ExitStatus::configuration, problem_of_taken(parts.front()) + "; move it away");
        std::vector<const Part *> missing;
        for (const auto &part : parts)
            if (look_at_part(part) == Found::nothing) missing.push_back(&part);
        left.insert(name);
        if (!missing.empty())
            changes.make("make the command " + parts.front().path() + ", another name of " + places.wrapper, [&] {
                write_command_names(places, left); // first: what is made is known, whatever happens next
                for (const auto *part : missing)
                    make_part(*part);
                fault_point("command-named");
            });
    }
    for (const auto &old : noted) {
        if (old == name) continue;
        changes.make("remove the command " + parts_of(old, places).front().path(), [&] { remove_name(old, places); });
        left.erase(old);
    }
    if (!changes.dry_run() && left != read_command_names(places)) write_command_names(places, left);
}

std::string noted_command(const AsRoot & /*root*/, const CommandPlaces &places)
{
    const CommandNames noted = read_command_names(places);
    return noted.empty() ? split_last(places.wrapper).second : *noted.begin();
}

void remove_command(const AsRoot & /*root*/, const CommandPlaces &places, Changes &changes)
{
    const CommandNames noted = read_command_names(places);
    for (const auto &command : noted)
        changes.make("remove the command " + parts_of(command, places).front().path(), [&] { remove_name(command, places); });
    if (!changes.dry_run() && !noted.empty()) write_command_names(places, {});
}

} // namespace pi_agent
