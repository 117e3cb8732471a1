// pi-agent-fetch: fetches an agent as an account that has nothing else. Started by pi-agentctl, in a unit of its own; its order is its
// input.
#include "common/agents/fetch_order.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <curl/curl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

namespace {

using namespace pi_agent;

const std::string fetch_place = fetch_directory;
const std::string tree = fetch_place + "/" + fetched_tree;
const std::string certificate_place = fetch_place + "/certificates.pem";

// --- Starting tar and npm in the unit that this program has for itself, and waiting for them: what they leave running ends with it.

constexpr std::size_t kept_output = 4000;

struct ProgramOutcome {
    int status = 0;     // exit code, or 128 and the signal
    std::string output; // the end of what it wrote, to either stream
};

void keep_output(FdRef end, std::string &text, bool &at_end)
{
    std::array<char, 4096> chunk{};
    const auto size = ::read(end.get(), chunk.data(), chunk.size());
    if (size < 0 && errno != EINTR) throw_errno("cannot read the output of a program");
    at_end = size == 0;
    if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > kept_output) text.erase(0, text.size() - kept_output);
}

// Whether somebody listens to what this program says. pi-agentctl may have been killed: then there is nothing left to do.
bool is_heard()
{
    pollfd listener{STDOUT_FILENO, 0, 0};
    return ::poll(&listener, 1, 0) == 0;
}

// Runs a program by its path, in `directory`, without input, and waits for it. `variables` ("NAME=value") are all that it gets. Throws
// SystemFailure; ends this program where nobody listens to it any more.
ProgramOutcome run_fetch_program(const std::vector<std::string> &arguments, const std::vector<std::string> &variables,
                                 const std::string &directory)
{
    auto [output, their_end] = make_pipe();
    posix_spawn_file_actions_t actions{};
    int error = ::posix_spawn_file_actions_init(&actions);
    if (error == 0) error = ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    if (error == 0) error = ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
        if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, their_end.get(), stream);
    if (error != 0) throw SystemFailure(error, "cannot prepare a program");
    pid_t pid = -1;
    const auto argv = exec_pointers(arguments);
    const auto environment = exec_pointers(variables);
    error = ::posix_spawn(&pid, arguments.front().c_str(), &actions, nullptr, argv.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw SystemFailure(error, "cannot start " + arguments.front());
    their_end.reset();
    ProgramOutcome outcome;
    for (bool at_end = false; !at_end;) {
        std::array<pollfd, 2> waits{pollfd{output.get(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
        if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) throw_errno("waiting for a program");
        if (waits[1].revents != 0) std::_Exit(EXIT_FAILURE); // systemd kills what is left in the unit
        if (waits[0].revents != 0) keep_output(output, outcome.output, at_end);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) throw_errno("waiting for a program");
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

// --- Gets files from the registry over HTTPS with libcurl, and their sha512 with libcrypto.

constexpr long connect_seconds = 30;
constexpr long stalled_seconds = 60; // without a byte
constexpr long most_redirects = 5;
// What npm asks for: the short form of an answer, where the registry has it.
constexpr const char *short_form = "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8";

struct EndCurl {
    void operator()(CURL *handle) const noexcept { curl_easy_cleanup(handle); }
    void operator()(curl_slist *list) const noexcept { curl_slist_free_all(list); }
    void operator()(EVP_MD_CTX *digest) const noexcept { EVP_MD_CTX_free(digest); }
};
template <typename Thing>
using Owned = std::unique_ptr<Thing, EndCurl>;

// How far a download is: bytes that came, and bytes that it has (0: not known).
using DownloadProgress = std::function<void(std::uint64_t got, std::uint64_t all)>;

// Takes what comes. What it throws is kept until libcurl, which is C, has ended.
struct Arrival {
    std::function<void(std::string_view bytes)> take;
    DownloadProgress progress;
    std::size_t limit = 0;
    std::uint64_t got = 0;
    bool is_unheard = false;
    std::exception_ptr problem;
};

std::size_t take_bytes(char *bytes, std::size_t one, std::size_t count, void *context) noexcept
{
    auto &arrival = *static_cast<Arrival *>(context);
    try {
        arrival.got += one * count;
        if (arrival.got > arrival.limit) throw Failure(ExitStatus::unavailable, "is larger than it may be");
        arrival.take({bytes, one * count});
        return one * count;
    } catch (...) {
        arrival.problem = std::current_exception();
        return CURL_WRITEFUNC_ERROR;
    }
}

int tell_progress(void *context, curl_off_t all, curl_off_t got, curl_off_t /*to_send*/, curl_off_t /*sent*/) noexcept
{
    auto &arrival = *static_cast<Arrival *>(context);
    try {
        if (arrival.progress) arrival.progress(static_cast<std::uint64_t>(got), static_cast<std::uint64_t>(all));
        arrival.is_unheard = !is_heard();
    } catch (...) {
        arrival.problem = std::current_exception();
    }
    return arrival.is_unheard || arrival.problem ? 1 : 0;
}

template <typename Value>
void set(CURL *handle, CURLoption option, Value value)
{
    if (const auto code = curl_easy_setopt(handle, option, value); code != CURLE_OK)
        throw Failure(ExitStatus::internal, std::string("libcurl takes no option: ") + curl_easy_strerror(code));
}

std::string setting_of(const FetchOrder &order, const char *name)
{
    const auto found = order.settings.find(name);
    return found == order.settings.end() ? "" : found->second;
}

std::string why(CURLcode code, long status)
{
    if (status == 401 || status == 403)
        return "the registry refuses it (HTTP " + std::to_string(status) + "); give root's ~/.npmrc its token (//HOST/:_authToken=)";
    if (status == 404) return "the registry does not have it (HTTP 404); check the registry's URL";
    if (status >= 400) return "the registry answers with HTTP " + std::to_string(status) + "; try again later";
    std::string reason = curl_easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return reason + "; name the authority that signs for this registry as cafile in /etc/npmrc, or add it to the host's certificates";
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
        return "the registry leads from https to http, where others on the way could change what comes; ask who runs it to correct its "
               "URLs";
    if (code == CURLE_SSL_CACERT_BADFILE) return reason + "; install the package ca-certificates, or correct cafile in /etc/npmrc";
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT)
        return reason + "; check the network, and https-proxy in /etc/npmrc";
    return reason;
}

void prepare_transfer(CURL *handle, const FetchOrder &order, const std::string &url, Arrival &arrival)
{
    set(handle, CURLOPT_URL, url.c_str());
    // Neither a redirect nor an archive's URL leads from https to http.
    const char *protocols = order.registry.starts_with("https://") && defence_is_on("agent-https") ? "https" : "http,https";
    set(handle, CURLOPT_PROTOCOLS_STR, protocols);
    set(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    for (const auto &[option, number] : {std::pair{CURLOPT_FOLLOWLOCATION, 1L},
                                         {CURLOPT_MAXREDIRS, most_redirects},
                                         {CURLOPT_FAILONERROR, 1L},
                                         {CURLOPT_NOSIGNAL, 1L},
                                         {CURLOPT_CONNECTTIMEOUT, connect_seconds},
                                         {CURLOPT_LOW_SPEED_LIMIT, 1L},
                                         {CURLOPT_LOW_SPEED_TIME, stalled_seconds},
                                         {CURLOPT_NOPROGRESS, 0L}})
        set(handle, option, number);
    set(handle, CURLOPT_USERAGENT, "pi-agent-fetch");
    if (!order.certificates.empty()) set(handle, CURLOPT_CAINFO, certificate_place.c_str()); // in the place of the host's
    const auto secure = setting_of(order, "https-proxy");
    const auto proxy = url.starts_with("https://") && !secure.empty() ? secure : setting_of(order, "proxy");
    if (!proxy.empty()) set(handle, CURLOPT_PROXY, proxy.c_str());
    if (const auto without = setting_of(order, "noproxy"); !without.empty()) set(handle, CURLOPT_NOPROXY, without.c_str());
    const auto token = token_of_registry(order.settings, order.registry);
    if (!token.empty() && url.starts_with(order.registry)) { // libcurl sends it to no other host that it is led to
        set(handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        set(handle, CURLOPT_XOAUTH2_BEARER, token.c_str());
    }
    set(handle, CURLOPT_WRITEFUNCTION, &take_bytes);
    set(handle, CURLOPT_WRITEDATA, static_cast<void *>(&arrival));
    set(handle, CURLOPT_XFERINFOFUNCTION, &tell_progress);
    set(handle, CURLOPT_XFERINFODATA, static_cast<void *>(&arrival));
}

void transfer(const FetchOrder &order, const std::string &url, Arrival &arrival)
{
    const Owned<CURL> handle(curl_easy_init());
    if (!handle) throw Failure(ExitStatus::internal, "libcurl does not begin");
    const Owned<curl_slist> headers(curl_slist_append(nullptr, short_form));
    set(handle.get(), CURLOPT_HTTPHEADER, headers.get());
    prepare_transfer(handle.get(), order, url, arrival);
    const auto code = curl_easy_perform(handle.get());
    if (arrival.is_unheard) std::_Exit(EXIT_FAILURE);
    const auto about = "cannot fetch " + escape_for_display(without_secrets(url)) + ": ";
    try {
        if (arrival.problem) std::rethrow_exception(arrival.problem);
    } catch (const SystemFailure &) {
        throw;
    } catch (const Failure &failure) {
        throw Failure(failure.status(), about + failure.what());
    }
    if (code == CURLE_OK) return;
    long status = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    throw Failure(ExitStatus::unavailable, about + why(code, status));
}

// A text, at most `limit` bytes. Throws Failure(unavailable), which names the URL, the reason and what to do.
std::string get_text(const FetchOrder &order, const std::string &url, std::size_t limit)
{
    std::string text;
    Arrival arrival;
    arrival.limit = limit;
    arrival.take = [&text](std::string_view bytes) { text += bytes; };
    transfer(order, url, arrival);
    return text;
}

// A new file `path` of at most `limit` bytes whose sha512 is `digest`; nothing of another one stays. Throws as above, and
// SystemFailure.
void get_file(const FetchOrder &order, const std::string &url, const std::string &path, std::size_t limit, const std::string &digest,
              const DownloadProgress &progress)
{
    const auto file = open_or_throw("cannot create " + path, FdRef(AT_FDCWD), path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    const Owned<EVP_MD_CTX> sum(EVP_MD_CTX_new());
    if (!sum || EVP_DigestInit_ex(sum.get(), EVP_sha512(), nullptr) != 1)
        throw Failure(ExitStatus::internal, "libcrypto does not begin a sha512");
    Arrival arrival;
    arrival.limit = limit;
    arrival.progress = progress;
    arrival.take = [&](std::string_view bytes) {
        write_whole(file, bytes, path);
        EVP_DigestUpdate(sum.get(), bytes.data(), bytes.size());
    };
    try {
        transfer(order, url, arrival);
        std::array<unsigned char, EVP_MAX_MD_SIZE> got{};
        unsigned length = 0;
        if (EVP_DigestFinal_ex(sum.get(), got.data(), &length) != 1) throw Failure(ExitStatus::internal, "libcrypto does not end a sha512");
        if (std::string(got.begin(), got.begin() + length) != digest && defence_is_on("agent-integrity"))
            throw Failure(ExitStatus::unavailable,
                          "what came from " + escape_for_display(without_secrets(url)) +
                              " is not what it should be: its sha512 is another one, so it is not used; try again, "
                              "and if it stays so, ask who runs the registry");
    } catch (const std::exception &) {
        ::unlink(path.c_str()); // best_effort: it is not used, and all of the directory goes at the end
        throw;
    }
}

// --- Node and npm from the registry's own archives, by their check sums; then npm, for the agent.

constexpr std::size_t order_limit = std::size_t{16} << 20U;
constexpr std::size_t archive_limit = std::size_t{512} << 20U;
constexpr std::size_t package_json_limit = std::size_t{1} << 20U;
constexpr auto between_sizes = std::chrono::milliseconds(200);
constexpr const char *system_certificates = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char *installed_npm = "/usr/bin/npm";

void say(const FetchLine &line)
{
    write_whole(FdRef(STDOUT_FILENO), write_fetch_line(line), "answer");
}

void make_directory(const std::string &path)
{
    if (::mkdir(path.c_str(), 0755) != 0) throw_errno("cannot create " + path);
}

void write_file(const std::string &path, const std::string &text)
{
    write_whole(open_or_throw("cannot create " + path, FdRef(AT_FDCWD), path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), text, path);
}

std::vector<std::string> variables_of_npm(const FetchOrder &order)
{
    std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + fetch_place + "/home", "NO_COLOR=1",
                                          "TMPDIR=/tmp"};
    // Node has certificates of its own; the host's administrator has added to the host's.
    const std::string certificates = !order.certificates.empty() ? certificate_place : system_certificates;
    if (::access(certificates.c_str(), R_OK) == 0) variables.push_back("NODE_EXTRA_CA_CERTS=" + certificates);
    return variables;
}

// npm knows its own registry; where none is installed nobody here does.
std::string registry_of_npm(const FetchOrder &order)
{
    if (!order.registry.empty()) return order.registry;
    std::string url;
    if (::access(installed_npm, X_OK) == 0)
        url = one_line(
            run_fetch_program({installed_npm, "config", "get", "registry"}, variables_of_npm(order), fetch_place + "/home").output);
    if (is_registry_url(url) && is_safe_on_the_way(url)) return registry_directory(url);
    throw Failure(ExitStatus::configuration, "no package registry is configured on this host; name it with --registry URL, or write "
                                             "registry=URL into /etc/npmrc");
}

void unpack(const std::string &archive, const std::string &directory)
{
    make_directory(directory);
    const auto outcome =
        run_fetch_program({"/usr/bin/tar", "--extract", "--file=" + archive, "--directory=" + directory, "--strip-components=1",
                           "--no-same-owner", "--no-same-permissions", "--no-acls", "--no-selinux", "--no-xattrs"},
                          {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, fetch_place);
    if (outcome.status != 0) throw Failure(ExitStatus::unavailable, "cannot unpack " + archive + ": " + one_line(outcome.output));
}

// One of the two packages that npm itself needs.
void fetch_pinned(const FetchOrder &order, const PinnedPackage &pinned, const std::string &directory)
{
    const auto what = pinned.package + " " + pinned.version;
    say({.text = "fetching " + what});
    const auto digest = read_integrity(pinned.integrity);
    if (!digest) throw Failure(ExitStatus::internal, "the check sum of " + what + " in pi-agent's own data is not one");
    const auto answer =
        read_registry_answer(get_text(order, order.registry + pinned.package, registry_answer_limit), pinned.package, pinned.version);
    const auto archive = directory + ".tgz";
    auto last = std::chrono::steady_clock::now() - between_sizes;
    get_file(order, answer.tarball, archive, archive_limit, *digest, [&](std::uint64_t got, std::uint64_t all) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < between_sizes) return;
        last = now;
        say({.kind = FetchLine::Kind::size, .got = got, .all = all});
    });
    fault_point("agent-downloaded");
    unpack(archive, directory);
    if (::unlink(archive.c_str()) != 0) throw_errno("cannot remove " + archive);
}

void run_npm(const FetchOrder &order)
{
    say({.text = "fetching " + order.package + " " + order.version + " and what it needs, with npm"});
    const bool is_locked = !order.lock.empty();
    write_file(tree + "/package.json", is_locked ? order.manifest : "{\"private\": true}\n");
    if (is_locked) write_file(tree + "/package-lock.json", order.lock);
    std::vector<std::string> command = {tree + "/node/bin/node", fetch_place + "/boot/npm/bin/npm-cli.js", is_locked ? "ci" : "install"};
    if (!is_locked) command.push_back(order.package + "@" + order.version);
    for (const char *option : {"--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress",
                               "--save-exact", "--omit-lockfile-registry-resolved", "--loglevel=error", "--logs-max=0"})
        command.emplace_back(option);
    command.push_back("--registry=" + order.registry);
    command.push_back("--cache=" + fetch_place + "/cache");
    if (const auto outcome = run_fetch_program(command, variables_of_npm(order), tree); outcome.status != 0)
        throw Failure(ExitStatus::unavailable, "npm could not fetch " + order.package + " " + order.version + " (status " +
                                                   std::to_string(outcome.status) + "): " + one_line(outcome.output));
    fault_point("agent-npm-done");
}

// What lies in the directory fetched_tree at the end: the node, and what npm made. Throws Failure, in words for the administrator.
FetchLine fetch_agent(const FetchOrder &given)
{
    for (const char *directory : {"/boot", "/home", "/cache", "/tree"})
        make_directory(fetch_place + directory);
    auto order = given;
    if (!order.certificates.empty()) write_file(certificate_place, order.certificates);
    order.registry = registry_of_npm(order);
    auto settings = order.settings;
    settings["registry"] = order.registry;
    write_file(fetch_place + "/home/.npmrc", write_npmrc(settings));
    fetch_pinned(order, order.node, tree + "/node");
    fetch_pinned(order, order.npm, fetch_place + "/boot/npm");
    run_npm(order);
    const auto package = order.platform_package.empty() ? order.package : order.platform_package;
    const auto manifest = tree + "/node_modules/" + package + "/package.json";
    const auto text =
        read_whole(open_or_throw("reading " + manifest, manifest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), package_json_limit, manifest);
    const auto found = read_package_program(text, package, order.command);
    return {.kind = FetchLine::Kind::done, .version = found.version, .program = "node_modules/" + package + "/" + found.program};
}

} // namespace

int main()
{
    // What it makes is shut: root gives files their modes.
    ::umask(077);
    std::signal(SIGPIPE, SIG_IGN);
    try {
        if (::geteuid() == 0 && defence_is_on("agent-fetch-unprivileged"))
            throw Failure(FailureKind::by_hand, "pi-agent-fetch does not run as root; pi-agentctl agent install starts it");
        if (::getenv("STATE_DIRECTORY") == nullptr) // which its unit sets
            throw Failure(FailureKind::by_hand, "pi-agentctl agent install starts this program; do not run it by hand");
        say(fetch_agent(read_fetch_order(read_whole(FdRef(STDIN_FILENO), order_limit, "order"))));
        return EXIT_SUCCESS;
    } catch (const std::exception &failure) {
        try {
            say({.kind = FetchLine::Kind::failure, .text = failure.what()});
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): nobody listens
        }
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known != nullptr ? known->status() : ExitStatus::internal);
    }
}
