// Answers of children that are the caller, as bytes.
#include "runner/wire/user_files.hpp"

#include "runner/wire/answer.hpp"

namespace pi_agent {

std::string certificate_path_inside(std::size_t number)
{
    return "/run/pi-agent/ca/" + std::to_string(number) + ".pem";
}

bool CertificateFiles::is_sound() const
{
    std::size_t size = 0;
    std::set<std::string> paths;
    for (const auto &content : contents) {
        size += content.size();
        paths.insert(certificate_path_inside(paths.size() + 1));
    }
    return size <= certificates_limit &&
           std::all_of(renamed.begin(), renamed.end(), [&](const auto &one) { return paths.contains(one.second); });
}

// A name of a copy leads nowhere else.
bool GitOfUser::has_small_files() const
{
    return std::all_of(files.begin(), files.end(), [](const auto &file) {
        return !file.first.empty() && file.first.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos &&
               file.second.size() <= git_file_copy_limit;
    });
}

std::string git_defaults(RepositoryConfig config)
{
    // Owners look different inside and outside: with checkStat, user and agent do not make each other read all files again. Worktrees that
    // are not shown look removed. Tracking would be written to a file that cannot be written.
    return std::string("[core]\n\tcheckStat = minimal\n[gc]\n\tworktreePruneExpire = never\n") +
           (config == RepositoryConfig::protected_ ? "[branch]\n\tautoSetupMerge = false\n" : "") +
           "[include]\n\tpath = \"/etc/gitconfig\"\n";
}

std::string git_file_inside(const std::string &copy)
{
    return "/run/pi-agent/git/" + copy;
}

std::string notice_of_key(const char *what, const std::string &path, const std::string &problem)
{
    return std::string(what) + ": the agent's git cannot use the key " + escape_for_display(path) + ": " + escape_for_display(problem);
}

bool HostVariables::are_the_users() const
{
    return std::none_of(assignments.begin(), assignments.end(), [](const EnvAssignment &one) {
        return problem_of_host_env_name(one.name) || one.value.find('\0') != std::string::npos;
    });
}

namespace {

// As many packets follow as the home has directories: each may come with a descriptor.
struct HomeHead {
    std::string path;
    std::uint64_t count = 0;
    std::map<std::string, std::string> links = {};

    static void fields(auto &archive, auto &self)
    {
        archive(self.path);
        archive.bounded(self.count, 400, "the receiver found too many directories of the home");
        archive.bounded(self.links, home_links_limit, "the receiver found too many links of the home");
    }
};

} // namespace

void send_home(FdRef channel, const OpenedHome &home)
{
    send_answer(channel, HomeHead{home.path, home.directories.size(), home.links});
    for (const auto &one : home.directories)
        send_answer(channel, one);
}

OpenedHome receive_home(const std::function<Packet()> &next)
{
    const auto head = decode_packet<HomeHead>(next());
    OpenedHome home{head.path, {}, head.links};
    while (home.directories.size() < head.count)
        home.directories.push_back(decode_packet<HomeDirectory>(next()));
    return home;
}

} // namespace pi_agent
