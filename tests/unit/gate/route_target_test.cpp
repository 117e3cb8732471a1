// Where requests of the reverse route go: gate/gate.hpp
#include "gate/gate.hpp"

#include "common/policy/host_rule.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace pi_agent;

namespace route_target_test {

namespace {

// The word of the refusal, or nothing.
std::string reason_of(const std::function<void()> &ask)
{
    try {
        ask();
    } catch (const RequestRefusal &refusal) {
        return refusal.reason ? text_of(*refusal.reason).word : "";
    }
    return "";
}

std::string sent(const std::string &target)
{
    const RouteTarget read = read_route_target(target);
    return read.host + " " + read.path + read.query;
}

const std::vector<GateProvider> &providers()
{
    static const std::vector<GateProvider> known = {
        {"api.openai.com",
         "authorization",
         "Bearer ",
         "sk",
         {"POST", "WEBSOCKET", "GET"},
         {"/v1/responses", "/v1/responses", "/v1/models/"},
         "p:1"},
        {"api.anthropic.com", "x-api-key", "", "sk", {"POST"}, {"/v1/messages"}, "p:2"},
    };
    return known;
}

std::string chosen(const std::string &method, const std::string &target)
{
    std::string where;
    const std::string reason = reason_of([&] { where = choose_provider(providers(), method, read_route_target(target)).where; });
    return where.empty() ? reason : where;
}

} // namespace

TEST_CASE("the first part of the path is the host, and the rest goes to it")
{
    CHECK(sent("/api.openai.com/v1/responses") == "api.openai.com /v1/responses");
    CHECK(sent("/api.anthropic.com/v1/messages?beta=true") == "api.anthropic.com /v1/messages?beta=true");
    CHECK(sent("/api.openai.com") == "api.openai.com ");
    CHECK(sent("/b.example/model/us.claude-v1%3A0/converse-stream") == "b.example /model/us.claude-v1%3A0/converse-stream");
    CHECK(sent("/openrouter.ai/api/v1/v1/messages?beta=true") == "openrouter.ai /api/v1/messages?beta=true");
}

TEST_CASE("a path that a server could read in another way is refused")
{
    for (const std::string path : {"",
                                   "v1",
                                   "*",
                                   "http://api.openai.com/v1/responses",
                                   "//api.openai.com/v1",
                                   "/h/../v1",
                                   "/h/v1/..",
                                   "/h/v1/./x",
                                   "/h/.",
                                   "/h//v1",
                                   "/h/v1//x",
                                   "/h/%2e%2e/v1",
                                   "/h/v1/%2E%2e",
                                   "/h/v1%2fx",
                                   "/h/v1%2Fx",
                                   "/h/v1%5cx",
                                   "/h/v1\\x",
                                   "/h/v1%00",
                                   "/h/v1%0d%0a",
                                   "/h/v1%7f",
                                   "/h/v1%25%32%65",
                                   "/h/v1%",
                                   "/h/v1%4",
                                   "/h/v1%zz",
                                   "/h/v1%6dessages",
                                   "/h/v1;x",
                                   "/h/v1%3bx",
                                   "/h/v1#x",
                                   "/h/v1%23x",
                                   "/h/v1%3fx",
                                   "/h/v1 x",
                                   "/h/v1\tx",
                                   "/h/v1<x",
                                   "/h/v1\"x",
                                   "/h/v1|x",
                                   "/h/v1\xc3\xa9",
                                   "/h/v1\x01",
                                   "/h/v1?a=#",
                                   "/h/v1?a=b;key=c",
                                   "/h/v1?a= b",

                                   "/h/v1?%zz=1"})
        CHECK_MESSAGE(reason_of([&] { (void)sent(path); }) == "malformed", path);
    CHECK(reason_of([] { (void)sent("/h/" + std::string(10'000, 'a')); }) == "malformed");
}

TEST_CASE("what could be a key of somebody else's is left out of the query")
{
    CHECK(sent("/h/v1?key=theirs") == "h /v1");
    CHECK(sent("/h/v1?alt=sse&key=theirs&x=1") == "h /v1?alt=sse&x=1");
    CHECK(sent("/h/v1?KEY=a&%6bey=b&api_key=c&access_token=d&%61ccess_token=e&alt=sse") == "h /v1?alt=sse");
    CHECK(sent("/h/v1?key&&monkey=1&") == "h /v1?monkey=1");
    CHECK(sent("/h/v1?$httpMethod=DELETE&X-HTTP-Method-Override=GET") == "h /v1");
    CHECK(sent("/h/v1?$key=a&%24key=b&$httpHeaders=X-Goog-Api-Key:c&$req=d&x-goog-api-key=e&alt=sse") == "h /v1?alt=sse");
}

TEST_CASE("a key goes to the methods and paths that the policy's provider has, and nowhere else")
{
    CHECK(chosen("POST", "/api.openai.com/v1/responses") == "p:1");
    CHECK(chosen("WEBSOCKET", "/api.openai.com/v1/responses") == "p:1");
    CHECK(chosen("GET", "/api.openai.com/v1/models/gpt-5") == "p:1");
    CHECK(chosen("POST", "/api.anthropic.com/v1/messages") == "p:2");
    CHECK(chosen("GET", "/api.openai.com/v1/responses") == "other-method");
    CHECK(chosen("post", "/api.openai.com/v1/responses") == "other-method");
    CHECK(chosen("POST", "/api.openai.com/v1/models/x") == "other-method");
    for (const std::string path : {"", "/", "/v1", "/v1/", "/v1/responses/", "/v1/responses/x", "/v1/responsesx", "/V1/responses",
                                   "/v1/models/", "/v1/files", "/v1/organization/admin_api_keys"})
        CHECK_MESSAGE(chosen("POST", "/api.openai.com" + path) == "other-path", path);
    for (const std::string host :
         {"evil.example", "API.OPENAI.COM", "api.openai.com.", "api.openai.com:443", "api.openai.com@evil.example", "%61pi.openai.com"})
        CHECK_MESSAGE(
            (chosen("POST", "/" + host + "/v1/responses") == "no-provider" || chosen("POST", "/" + host + "/v1/responses") == "malformed"),
            host);
}

TEST_CASE("the table's keys are for answers of a model, and for no batches, long work, files or pictures")
{
    const auto reason = [](const char *name, const std::string &method, const std::string &path) {
        GateProvider one{"h.example", "authorization", "", "k", {}, {}, "p:1"};
        for (const auto &request : find_provider(name)->requests) {
            one.methods.emplace_back(request.method);
            one.paths.emplace_back(request.path);
        }
        return reason_of([&] { (void)choose_provider({one}, method, read_route_target("/h.example" + path)); });
    };
    for (const std::string call : {"generateContent", "streamGenerateContent", "countTokens", "embedContent"})
        CHECK_MESSAGE(reason("google", "POST", "/v1beta/models/gemini-2.5-flash:" + call).empty(), call);
    CHECK(reason("google", "GET", "/v1beta/models/gemini-2.5-flash").empty());
    for (const std::string path :
         {"/v1beta/models/g:batchGenerateContent", "/v1beta/models/g:asyncBatchEmbedContent", "/v1beta/models/v:predictLongRunning",
          "/v1beta/models/g%3AbatchGenerateContent", "/v1beta/models/:generateContent", "/v1beta/models/a/b:generateContent",
          "/v1beta/files:generateContent"})
        CHECK_MESSAGE(!reason("google", "POST", path).empty(), path); // to a GET, some of them name a model
    CHECK(reason("google", "GET", "/v1beta/models/v/operations/o") == "other-path");
    CHECK(reason("azure-openai-responses", "POST", "/openai/deployments/mine/chat/completions").empty());
    for (const std::string path : {"/openai/deployments/mine/images/generations", "/openai/deployments/mine/audio/speech",
                                   "/openai/deployments/a/b/chat/completions"})
        CHECK_MESSAGE(reason("azure-openai-responses", "POST", path) == "other-path", path);
    CHECK(reason("openai", "POST", "/v1/decisions").empty());
    CHECK(reason("openai", "GET", "/v1/decisions") == "other-method");
    CHECK(reason("openai", "POST", "/v1/decisions/x") == "other-path");
    CHECK(reason("openrouter", "GET", "/api/v1/models/user").empty()); // what the key may use
    for (const std::string path : {"/api/v1/key", "/api/v1/keys", "/api/v1/credits", "/api/v1/systemone"})
        CHECK_MESSAGE(reason("openrouter", "GET", path) == "other-path", path);
    CHECK(reason("amazon-bedrock", "POST", "/model/us.claude-v1%3A0/converse-stream").empty());
    CHECK(reason("amazon-bedrock", "POST", "/model/us.claude-v1%3A0/other") == "other-path");
}

} // namespace route_target_test
