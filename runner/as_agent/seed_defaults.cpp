// Copying the defaults, file by file, at every start.
#include "runner/as_agent/seed_defaults.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/places.hpp"
#include "runner/as_agent/replacement.hpp"
#include "runner/wire/answer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int defaults_depth_limit = 64;

std::string shown(const std::string &path)
{
    return std::string("the default file ") + build::defaults_path + "/" + escape_for_display(path);
}

// Walks both trees side by side. Only names and kinds are looked at where everything is there already.
class Seeding {
public:
    Seeding(FdRef staging, FdRef channel) : staging_(staging), channel_(channel) {}

    // `path` is that of `from` beneath the defaults, "" or with a slash at its end.
    void directory(FdRef from, FdRef into, const std::string &path, int depth)
    {
        if (depth > defaults_depth_limit) throw Failure(ExitStatus::configuration, shown(path) + " is nested too deep");
        for (const auto &name : names_in(from)) {
            struct stat facts {};
            if (fstatat(from.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) throw_errno("examining " + shown(path + name));
            if (S_ISDIR(facts.st_mode))
                subdirectory(from, into, name, path, depth);
            else if (S_ISREG(facts.st_mode))
                file(from, into, name, path);
            else
                throw Failure(ExitStatus::configuration, shown(path + name) + " is neither a file nor a directory; install pi-agent again");
        }
    }

private:
    void subdirectory(FdRef from, FdRef into, const std::string &name, const std::string &path, int depth)
    {
        if (mkdirat(into.get(), name.c_str(), 0700) != 0 && errno != EEXIST && errno != EACCES)
            throw_errno("creating " + escape_for_display(path + name) + " in the agent's home");
        const UniqueFd inner = find_beneath(into, name, O_PATH | O_DIRECTORY);
        if (inner) directory(open_beneath(from, name, O_RDONLY | O_DIRECTORY), inner, path + name + "/", depth + 1);
    }

    void file(FdRef from, FdRef into, const std::string &name, const std::string &path)
    {
        if (has(into, name)) return;
        const UniqueFd source = find_beneath(from, name, O_RDONLY | O_NONBLOCK);
        struct stat facts {};
        if (!source || fstat(source.get(), &facts) != 0) throw_errno("opening " + shown(path + name) + " as the agent's account");
        Replacement fresh(staging_, (facts.st_mode & S_IXUSR) != 0 ? 0700 : 0600);
        HostFacts copied = facts_of(facts);
        fresh.copy_from(source, copied, channel_);
        fresh.commit_new(into, name);
        send_progress(channel_);
    }

    // In a directory that the agent closed there may be anything.
    static bool has(FdRef directory, const std::string &name)
    {
        struct stat facts {};
        const int flags = defence_is_on("seed-new") ? AT_SYMLINK_NOFOLLOW : 0;
        return fstatat(directory.get(), name.c_str(), &facts, flags) == 0 || errno != ENOENT;
    }

    FdRef staging_;
    FdRef channel_;
};

} // namespace

void seed_defaults(const AsUser & /*agent*/, FdRef home, FdRef staging, FdRef defaults, FdRef channel)
{
    umask(077);
    remove_content_beneath(staging); // left by a start that was killed
    Seeding(staging, channel).directory(defaults, home, "", 0);
}

} // namespace pi_agent
