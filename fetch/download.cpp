// Downloads with libcurl, and their sha512 with libcrypto.
#include "fetch/download.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "fetch/programs.hpp"

#include <array>
#include <curl/curl.h>
#include <openssl/evp.h>

namespace pi_agent {

namespace {

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

std::string proxy_for(const FetchOrder &order, const std::string &url)
{
    const auto secure = setting_of(order, "https-proxy");
    const auto plain = setting_of(order, "proxy");
    return url.starts_with("https://") && !secure.empty() ? secure : plain;
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

void prepare_transfer(CURL *handle, const FetchOrder &order, const std::string &certificate_file, const std::string &url, Arrival &arrival)
{
    set(handle, CURLOPT_URL, url.c_str());
    // Neither a redirect nor an archive's URL leads from https to http.
    const char *protocols = order.registry.starts_with("https://") && defence_is_on("agent-https") ? "https" : "http,https";
    set(handle, CURLOPT_PROTOCOLS_STR, protocols);
    set(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    set(handle, CURLOPT_FOLLOWLOCATION, 1L);
    set(handle, CURLOPT_MAXREDIRS, most_redirects);
    set(handle, CURLOPT_FAILONERROR, 1L);
    set(handle, CURLOPT_NOSIGNAL, 1L);
    set(handle, CURLOPT_CONNECTTIMEOUT, connect_seconds);
    set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(handle, CURLOPT_LOW_SPEED_TIME, stalled_seconds);
    set(handle, CURLOPT_USERAGENT, "pi-agent-fetch");
    if (!certificate_file.empty()) set(handle, CURLOPT_CAINFO, certificate_file.c_str());
    if (const auto proxy = proxy_for(order, url); !proxy.empty()) set(handle, CURLOPT_PROXY, proxy.c_str());
    if (const auto without = setting_of(order, "noproxy"); !without.empty()) set(handle, CURLOPT_NOPROXY, without.c_str());
    const auto token = token_of_registry(order.settings, order.registry);
    if (!token.empty() && url.starts_with(order.registry)) { // libcurl sends it to no other host that it is led to
        set(handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        set(handle, CURLOPT_XOAUTH2_BEARER, token.c_str());
    }
    set(handle, CURLOPT_WRITEFUNCTION, &take_bytes);
    set(handle, CURLOPT_WRITEDATA, static_cast<void *>(&arrival));
    set(handle, CURLOPT_NOPROGRESS, 0L);
    set(handle, CURLOPT_XFERINFOFUNCTION, &tell_progress);
    set(handle, CURLOPT_XFERINFODATA, static_cast<void *>(&arrival));
}

void transfer(const FetchOrder &order, const std::string &certificate_file, const std::string &url, Arrival &arrival)
{
    const Owned<CURL> handle(curl_easy_init());
    if (!handle) throw Failure(ExitStatus::internal, "libcurl does not begin");
    const Owned<curl_slist> headers(curl_slist_append(nullptr, short_form));
    set(handle.get(), CURLOPT_HTTPHEADER, headers.get());
    prepare_transfer(handle.get(), order, certificate_file, url, arrival);
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

std::string finished(EVP_MD_CTX *digest)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned length = 0;
    if (EVP_DigestFinal_ex(digest, bytes.data(), &length) != 1) throw Failure(ExitStatus::internal, "libcrypto does not end a sha512");
    return {bytes.begin(), bytes.begin() + length};
}

} // namespace

Downloader::Downloader(const FetchOrder &order, std::string certificate_file)
    : order_(order), certificate_file_(std::move(certificate_file))
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Failure(ExitStatus::internal, "libcurl does not begin");
}

Downloader::~Downloader()
{
    curl_global_cleanup();
}

std::string Downloader::get_text(const std::string &url, std::size_t limit)
{
    std::string text;
    Arrival arrival;
    arrival.limit = limit;
    arrival.take = [&text](std::string_view bytes) { text += bytes; };
    transfer(order_, certificate_file_, url, arrival);
    return text;
}

void Downloader::get_file(const std::string &url, const std::string &path, std::size_t limit, const std::string &digest,
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
        transfer(order_, certificate_file_, url, arrival);
        if (finished(sum.get()) != digest && defence_is_on("agent-integrity"))
            throw Failure(ExitStatus::unavailable,
                          "what came from " + escape_for_display(without_secrets(url)) +
                              " is not what it should be: its sha512 is another one, so it is not used; try again, "
                              "and if it stays so, ask who runs the registry");
    } catch (const std::exception &) {
        ::unlink(path.c_str()); // best_effort: it is not used, and all of the directory goes at the end
        throw;
    }
}

} // namespace pi_agent
