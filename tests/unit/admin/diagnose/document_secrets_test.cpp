// Secrets in the documents of a policy: admin/diagnose/faults.hpp
#include "admin/diagnose/faults.hpp"

#include <doctest/doctest.h>

using namespace pi_agent;

namespace document_secrets_test {

namespace {

std::string found_in(const std::string &document)
{
    return secret_in_document(document, "mcp", {"LLM_KEY"});
}

} // namespace

TEST_CASE("a secret is found by its key, by the option before it, in a header and in an address")
{
    CHECK(found_in(R"({"providers": {"x": {"apiKey": "sk-123"}}})") == "mcp.providers.x.apiKey");
    CHECK(found_in(R"({"s": {"headers": {"Authorization": "Bearer abc"}}})") == "mcp.s.headers.Authorization");
    CHECK(found_in(R"({"s": {"headers": {"proxy-authorization": "abc"}}})") == "mcp.s.headers.proxy-authorization");
    CHECK(found_in(R"({"s": {"headers": {"X-Own": "Bearer abc"}}})") == "mcp.s.headers.X-Own");
    CHECK(found_in(R"({"s": {"args": ["serve", "--token", "abc"]}})") == "mcp.s.args.2");
    CHECK(found_in(R"({"s": {"args": ["--api-key=abc"]}})") == "mcp.s.args.0");
    CHECK(found_in(R"({"s": {"args": ["--header", "Authorization: Bearer abc"]}})") == "mcp.s.args.1");
    CHECK(found_in(R"({"s": {"args": ["https://me:abc@example.net/"]}})") == "mcp.s.args.0");
    CHECK(found_in(R"({"s": [{"env": {"DB_PASSWORD": "abc"}}]})") == "mcp.s.0.env.DB_PASSWORD");
}

TEST_CASE("the name of a variable is no secret, and none is none")
{
    for (const char *value : {"LLM_KEY", "$LLM_KEY", "${LLM_KEY}", "Bearer $LLM_KEY", "none", ""}) {
        const std::string quoted = '"' + std::string(value) + '"';
        CHECK_MESSAGE(found_in(R"({"apiKey": )" + quoted + "}").empty(), value);
        CHECK_MESSAGE(found_in(R"({"headers": {"Authorization": )" + quoted + "}}").empty(), value);
        CHECK_MESSAGE(found_in(R"({"args": ["--token", )" + quoted + "]}").empty(), value);
    }
    CHECK(found_in(R"({"apiKey": "OTHER_KEY"})") == "mcp.apiKey");
}

TEST_CASE("what is no secret is none")
{
    for (const char *document : {R"({"keyboard": "x", "args": ["--verbose", "token"], "maxTokens": 5})", R"({"token": 5, "key": null})",
                                 R"({"args": ["--tokenizer", "fast", "a=b", "https://example.net/"], "theme": "Basically dark"})", "{}"})
        CHECK_MESSAGE(found_in(document).empty(), document);
}

} // namespace document_secrets_test
