// The lists of toolchains, caches and credentials.
#include "common/policy/toolchains.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace pi_agent {

const std::vector<std::string> &default_readable()
{
    static const std::vector<std::string> paths = {".asdf", ".config/mise", ".local/share/mise", ".nvm", ".pyenv", ".rbenv", ".rustup"};
    return paths;
}

const std::vector<std::string> &default_caches()
{
    static const std::vector<std::string> paths = {
        ".cache/pip",     ".cache/uv", ".cargo/registry",         ".gradle/caches",  ".gradle/jdks", ".gradle/wrapper/dists", ".ivy2/cache",
        ".m2/repository", ".npm",      ".local/share/pnpm/store", ".nuget/packages", "go/pkg/mod"};
    return paths;
}

std::string place_in_agent_home(const std::string &path)
{
    // CARGO_HOME, GOPATH and RUSTUP_HOME inside (runner/plan/environment.cpp).
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> moved = {
        {{".cargo", ".local/share/cargo"}, {"go", ".local/share/go"}, {".rustup", ".local/share/rustup"}}};
    for (const auto &[from, to] : moved)
        if (is_within(path, from)) return std::string(to).append(path.substr(from.size()));
    return path;
}

const std::vector<std::string> &never_shown()
{
    static const std::vector<std::string> paths = {
        // Of build tools, beside what they download.
        ".cargo/config", ".cargo/config.toml", ".cargo/credentials", ".cargo/credentials.toml", ".local/share/cargo/config.toml",
        ".local/share/cargo/credentials.toml", ".gem/credentials", ".gradle/daemon", ".gradle/enterprise", ".gradle/gradle.properties",
        ".gradle/init.d", ".gradle/init.gradle", ".gradle/init.gradle.kts", ".ivy2/.credentials", ".m2/settings-security.xml",
        ".m2/settings.xml", ".nuget/NuGet", ".config/NuGet", ".npmrc", ".pypirc", ".config/pip", ".pip", ".config/uv", ".yarnrc",
        ".yarnrc.yml", ".config/pnpm", ".config/composer", ".composer/auth.json", ".sbt",
        // Of hosts, clouds and people.
        ".ssh", ".gnupg", ".netrc", ".git-credentials", ".config/git", ".config/gh", ".config/glab-cli", ".config/hub", ".aws", ".azure",
        ".config/gcloud", ".config/containers", ".config/helm", ".config/op", ".config/rclone", ".config/sops", ".docker", ".kube",
        ".terraform.d", ".vault-token", ".pgpass", ".my.cnf", ".password-store", ".local/share/keyrings", ".mozilla", ".thunderbird",
        ".config/chromium", ".config/google-chrome", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".agents", ".pi",
        ".claude", ".codex", ".config/github-copilot", ".config/doctl", ".config/hcloud", ".config/keepassxc", ".local/share/kwalletd",
        ".oci", ".s3cfg", ".boto", ".pulumi", ".databrickscfg", ".snowflake", ".bash_history", ".zsh_history",
        // What starts with their session, or answers in it.
        ".config/autostart", ".config/environment.d", ".config/systemd", ".local/share/dbus-1", ".local/share/systemd"};
    return paths;
}

std::optional<PathProblem> problem_of_secrets(std::string_view below_home)
{
    const auto found = std::find_if(never_shown().begin(), never_shown().end(),
                                    [&](const auto &never) { return is_within(never, below_home) || is_within(below_home, never); });
    if (found == never_shown().end()) return std::nullopt;
    const std::string what = is_within(below_home, *found) ? "belongs to ~/" : "holds ~/";
    return PathProblem{what + *found + ", which no session is shown", "name a directory of projects"};
}

std::optional<PathProblem> problem_of_secrets_anywhere(std::string_view path)
{
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
        const std::string_view below = path.substr(slash + 1);
        const auto found =
            std::find_if(never_shown().begin(), never_shown().end(), [&](const auto &never) { return is_within(below, never); });
        if (found != never_shown().end())
            return PathProblem{"belongs to " + *found + " of a home, which no session is shown", "name a directory of projects"};
    }
    return std::nullopt;
}

std::optional<PathProblem> problem_of_home_directory(const std::string &path)
{
    if (path == "~") return PathProblem{"is a home directory itself", "name a directory below it, e.g. ~/.nvm"};
    if (path.substr(0, 2) != "~/")
        return PathProblem{"does not begin with '~/'", "name directories of the users' homes here, and others in view_paths"};
    const std::string below = path.substr(2);
    if (has_odd_component(below)) return PathProblem{"holds '//', '.' or '..'", "write the path without them"};
    auto problem = problem_of_secrets(below);
    if (problem) problem->remedy = "name a directory that holds nothing but programs, or downloads";
    return problem;
}

} // namespace pi_agent
