// Settings, credentials and managed documents through the whole config sync, start after start: runner/root/errand/errand.hpp
#include "support/config_sync.hpp"

using namespace pi_agent;
using namespace pi_agent::test;
using nlohmann::json;

namespace config_sync_documents_test {

namespace {

json login(const std::string &token)
{
    return {{"p", {{"type", "oauth"}, {"refresh", token}}}};
}

} // namespace

TEST_CASE("what the agent chose in its settings survives, and the host's change beats it" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"theme": "dark", "model": "host"})");
    CHECK(both.sync().empty());
    both.write_inside("settings.json", R"({"theme": "dark", "model": "inside", "lastChangelogVersion": "1.2.3"})");
    for (int start = 0; start < 5; ++start) {
        CHECK(both.sync().empty());
        CHECK(both.json_inside("settings.json") == json{{"theme", "dark"}, {"model", "inside"}, {"lastChangelogVersion", "1.2.3"}});
    }
    both.write("settings.json", R"({"theme": "dark", "model": "newer"})");
    for (int start = 0; start < 2; ++start) {
        CHECK(both.sync().empty());
        CHECK(both.json_inside("settings.json")["model"] == "newer");
    }
}

TEST_CASE("settings that the agent was killed over, or took away, come back" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"a": 1})");
    CHECK(both.sync().empty());
    both.write_inside("settings.json", R"({"a": 1, "chosen": true})");
    CHECK(both.sync().empty());
    for (const std::string torn : {"", "{\"a\": 1, \"cho", "[]"}) {
        both.write_inside("settings.json", torn);
        CHECK(both.sync().empty());
        CHECK(both.json_inside("settings.json") == json{{"a", 1}, {"chosen", true}});
    }
    fs::remove(both.path_inside("settings.json"));
    CHECK(both.sync().empty());
    CHECK(both.json_inside("settings.json") == json{{"a", 1}});
}

TEST_CASE("credentials that do not parse are kept aside, and what was known of them comes back" * doctest::skip(not_root()))
{
    const Both both;
    both.write("auth.json", login("H1").dump());
    CHECK(both.sync().empty());
    both.write_inside("auth.json", login("R1").dump());
    CHECK(both.sync().empty());
    both.write_inside("auth.json", R"({"p": {"type": "oauth", "refr)");
    const auto notices = both.sync();
    REQUIRE(notices.size() == 1);
    CHECK(has(notices[0], "the agent's auth.json was not valid; it is kept beside it as auth.json.kept-"));
    CHECK(both.json_inside("auth.json") == login("R1"));
    CHECK(both.sync().empty());
    // The agent could not log in over one that does not parse.
    both.write_inside("mcp-auth.json", "{ torn");
    CHECK(both.sync().size() == 1);
    CHECK(both.json_inside("mcp-auth.json").empty());
}

TEST_CASE("a login refreshed inside survives ten starts, a new one on the host wins once, a managed key beats both" *
          doctest::skip(not_root()))
{
    const Both both;
    Policy policy;
    const auto start = [&](const std::string &name = "auth.json") {
        CHECK(both.sync_with(policy).empty());
        return both.json_inside(name);
    };
    both.write("auth.json", R"({"anthropic": {"type": "oauth", "refresh": "H1"}, "openai": {"type": "api_key", "key": "k"}})");
    CHECK(start()["anthropic"]["refresh"] == "H1");
    for (int number = 0; number < 10; ++number) {
        json refreshed = both.json_inside("auth.json");
        refreshed["anthropic"]["refresh"] = "R" + std::to_string(number / 2);
        both.write_inside("auth.json", refreshed.dump());
        CHECK(start() == refreshed);
    }
    both.write("auth.json", R"({"anthropic": {"type": "oauth", "refresh": "H2"}, "openai": {"type": "api_key", "key": "k"}})");
    CHECK(start()["anthropic"]["refresh"] == "H2");
    CHECK(start()["anthropic"]["refresh"] == "H2");
    policy.env["ANTHROPIC_API_KEY"] = "managed";
    CHECK(start() == json::parse(R"({"openai": {"type": "api_key", "key": "k"}})"));
    CHECK(start().size() == 1);
    policy.env.clear();
    CHECK(start()["anthropic"]["refresh"] == "H2");
    struct stat facts {};
    REQUIRE(::stat(both.path_inside("auth.json").c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777U) == 0600);
}

TEST_CASE("models are merged while they are managed, and are the host's file again afterwards" * doctest::skip(not_root()))
{
    const Both both;
    const std::string text = "{ // comment\n  \"providers\": {\"openai\": {\"apiKey\": \"host's\", \"baseUrl\": \"u\"},},}";
    both.write("models.json", text);
    Policy policy;
    CHECK(both.sync_with(policy).empty());
    CHECK(both.inside("models.json") == text);
    policy.documents["models.json"] = R"({"providers": {"local": {"apiKey": "none"}}})";
    policy.env["OPENAI_API_KEY"] = "managed";
    const json merged = json::parse(R"({"providers": {"openai": {"baseUrl": "u"}, "local": {"apiKey": "none"}}})");
    for (int start = 0; start < 2; ++start) {
        CHECK(both.sync_with(policy).empty());
        CHECK(both.json_inside("models.json") == merged);
    }
    CHECK(both.sync_with(Policy()).empty());
    CHECK(both.inside("models.json") == text);
    CHECK(both.sync_with(policy).empty());
    fs::remove(both.config + "/models.json");
    CHECK(both.sync_with(Policy()).empty());
    CHECK_FALSE(fs::exists(both.path_inside("models.json")));
}

TEST_CASE("where only a key is managed, models that the host does not have are the agent's, and go where the host deletes its own" *
          doctest::skip(not_root()))
{
    const Both both;
    Policy policy;
    policy.env["OPENAI_API_KEY"] = "managed";
    CHECK(both.sync_with(policy).empty());
    CHECK_FALSE(fs::exists(both.path_inside("models.json")));
    const std::string own = "{ // the agent's\n \"providers\": {}}";
    both.write_inside("models.json", own);
    for (int start = 0; start < 3; ++start) {
        CHECK(both.sync_with(policy).empty());
        CHECK(both.inside("models.json") == own);
    }
    both.write("models.json", R"({"providers": {"openai": {"apiKey": "host's"}}})");
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("models.json") == json::parse(R"({"providers": {"openai": {}}})"));
    fs::remove(both.config + "/models.json");
    CHECK(both.sync_with(policy).empty());
    CHECK_FALSE(fs::exists(both.path_inside("models.json")));
}

TEST_CASE("what does not count is not read, and spoils no start" * doctest::skip(not_root()))
{
    const Both both;
    Policy policy;
    CHECK(both.sync_with(policy).empty());
    policy.documents["keybindings.json"] = R"({"managed": true})";
    for (const std::string name : {"auth.json", "mcp-auth.json", "keybindings.json"}) {
        both.write(name, "{ torn");
        policy.config_classes.set(name, name == "auth.json" ? FileClass::agent : FileClass::never);
    }
    both.write_inside("auth.json", login("R1").dump());
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("auth.json") == login("R1"));
    CHECK(both.json_inside("keybindings.json") == json{{"managed", true}});
}

TEST_CASE("a managed document that the host does not have goes when it is managed no longer" * doctest::skip(not_root()))
{
    const Both both;
    Policy policy;
    for (const std::string name : {"keybindings.json", "mcp.json", "models.json"})
        policy.documents[name] = R"({"managed": true})";
    CHECK(both.sync_with(policy).empty());
    for (const std::string name : {"keybindings.json", "mcp.json", "models.json"})
        CHECK(both.json_inside(name) == json{{"managed", true}});
    CHECK(both.sync_with(Policy()).empty());
    for (const std::string name : {"keybindings.json", "mcp.json", "models.json"})
        CHECK_FALSE(fs::exists(both.path_inside(name)));
}

TEST_CASE("under mcp_lock the policy's servers are the only ones, and a file is there to lock" * doctest::skip(not_root()))
{
    const Both both;
    Policy policy;
    policy.mcp_lock = true;
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("mcp.json") == json::object());
    both.write("mcp.json", R"({"mcpServers": {"mine": {}}})");
    both.write_inside("mcp.json", R"({"mcpServers": {"the agent's": {}}})");
    policy.documents["mcp.json"] = R"({"mcpServers": {"corp": {}}})";
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("mcp.json") == json::parse(policy.documents["mcp.json"]));
    policy.mcp_lock = false;
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("mcp.json") == json::parse(R"({"mcpServers": {"mine": {}, "corp": {}}})"));
}

TEST_CASE("documents that are wrong are refused with their place, and nothing inside changes" * doctest::skip(not_root()))
{
    struct Row {
        std::string name, text, refusal;
    };
    const std::vector<Row> rows = {
        {"settings.json", "{\n  \"a\": 1,\n}", "/config/settings.json:3:1: this is not valid JSON"},
        {"settings.json", "", "/config/settings.json:1:1: this is not valid JSON"},
        {"settings.json", "{\"a\": ", "/config/settings.json:1:"},
        {"settings.json", "{} // no comments here", "/config/settings.json:1:"},
        {"auth.json", "[1]", "/config/auth.json:1:1: the top level must be an object"},
        {"mcp-auth.json", "null", "/config/mcp-auth.json:1:1: the top level must be an object"},
        {"settings.json", "{\"a\": \"\xff\"}", "this is not valid JSON"},
        {"settings.json", std::string(100'000, '['), "nested deeper than 128 levels"},
        {"auth.json", std::string(4'194'305, ' '), "/config/auth.json is larger than 4194304 bytes"},
    };
    const Both both;
    both.write("settings.json", R"({"kept": true})");
    both.write("f", "kept");
    CHECK(both.sync().empty());
    both.write("f", "changed");
    for (const auto &row : rows) {
        CAPTURE(row.refusal);
        both.write(row.name, row.text);
        const Caught caught = failure_of([&] { return both.sync(); });
        CHECK(caught.status == 78);
        CHECK_MESSAGE(has(caught.text, row.refusal), caught.text);
        CHECK(both.json_inside("settings.json") == json{{"kept", true}});
        CHECK(both.inside("f") == "kept");
        both.write(row.name, "{}");
    }
    both.write("settings.json", R"({"kept": true})");
    CHECK(both.sync().empty());
    CHECK(both.inside("f") == "changed");
}

TEST_CASE("documents that are wrong where agents write are left out and told" * doctest::skip(not_root()))
{
    Both both;
    struct stat facts {};
    REQUIRE(::stat(both.config.c_str(), &facts) == 0);
    both.agents.places.push_back({both.config, facts.st_dev, facts.st_ino});
    for (const std::string text : {"{\n  oops}", "[1]", ""}) {
        both.write("settings.json", text);
        const std::vector<std::string> told = both.sync({{"managed", true}});
        REQUIRE(told.size() == 1);
        CHECK(has(told[0], "config/settings.json is left out: "));
        CHECK_FALSE(has(told[0], "nothing was changed"));
        CHECK(both.json_inside("settings.json") == json{{"managed", true}});
    }
    both.write("auth.json", std::string(4'194'305, ' '));
    both.write("settings.json", "{}");
    const std::vector<std::string> told = both.sync();
    REQUIRE(told.size() == 1);
    CHECK(has(told[0], "auth.json is left out: "));
}

TEST_CASE("a torn document is read again until it is whole" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", "{\"a\": "); // the agent on the host, in the middle of writing
    const auto finish = [&] {
        ::usleep(60'000);
        std::ofstream(both.config + "/settings.json", std::ios::app) << "1}";
    };
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
        finish();
        ::_exit(0);
    }
    CHECK(both.sync().empty());
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
    CHECK(both.json_inside("settings.json") == json{{"a", 1}});
}

TEST_CASE("resource paths that leave the directory are named, a few of them and cut" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"extensions": ["~/own", "fine"]})");
    auto notices = both.sync();
    REQUIRE(notices.size() == 1);
    CHECK(has(notices[0], both.config + "/settings.json: extensions: ~/own is outside the config directory"));
    // The agent writes this file too, and must not be able to spoil every start after it.
    json settings = both.json_inside("settings.json");
    for (int number = 0; number < 1000; ++number)
        settings["skills"].push_back("/" + std::string(2000, 'x'));
    settings["themes"] = {"/" + std::string(100'000, '\n')};
    both.write_inside("settings.json", settings.dump());
    notices = both.sync();
    CHECK(notices.size() == 20);
    for (const auto &notice : notices)
        CHECK(notice.size() < 5000);
}

TEST_CASE("locked settings are written in place: a rename would take the lock from every session that runs" * doctest::skip(not_root()))
{
    const Both both;
    const auto sync = [&](const std::string &text, bool locks) {
        both.write("settings.json", text);
        const UniqueFd locked = open_path(both.place / "locked", O_RDWR | O_CREAT | O_TRUNC);
        CHECK(both.sync_with(Policy(), locks ? FdRef(locked) : FdRef(-1)).empty());
        CHECK(both.json_inside("settings.json") == json::parse(text));
        return inode_of(open_path(both.path_inside("settings.json")));
    };
    const ino_t first = sync(R"({"a": 1, "long": "0123456789"})", true);
    CHECK(sync(R"({"a": 2})", true) == first);
    CHECK(sync(R"({"a": 3})", false) != first);
    // Not through what the agent planted there.
    fs::remove(both.path_inside("settings.json"));
    fs::create_hard_link(both.outside + "/canary", both.path_inside("settings.json"));
    sync(R"({"a": 4})", true);
    fs::remove(both.path_inside("settings.json"));
    give(both.place.link("home/.pi/agent/settings.json", both.outside + "/canary"), agent_account());
    sync(R"({"a": 5})", true);
    CHECK(both.outside_is_unchanged());
}

TEST_CASE("the locked settings get what was merged" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"a": 1})");
    Policy policy;
    policy.documents["settings.json"] = R"({"b": 2})";
    for (const std::string name : {"first", "second"}) { // an unchanged start too
        const UniqueFd locked = open_path(both.place / name, O_RDWR | O_CREAT);
        CHECK(both.sync_with(policy, locked).empty());
        CHECK(json::parse(content_of(both.place / name)) == json{{"a", 1}, {"b", 2}});
    }
}

TEST_CASE("the user's login for a provider whose key is held is left as it is" * doctest::skip(not_root()))
{
    const Both both;
    ProviderRule rule;
    rule.name = "anthropic";
    Policy policy;
    policy.providers = {rule};
    const auto login = [](const std::string &token) { return json{{"type", "oauth"}, {"refresh", token}}; };
    const auto inside = [&] {
        CHECK(both.sync_with(policy).empty());
        return both.json_inside("auth.json").value("anthropic", json());
    };
    both.write("auth.json", json{{"anthropic", login("H1")}}.dump());
    CHECK(inside() == login("H1"));
    both.write_inside("auth.json", json{{"anthropic", login("R1")}}.dump()); // renewed there
    CHECK(inside() == login("R1"));
    both.write("auth.json", json{{"anthropic", login("H2")}}.dump());
    CHECK(inside() == login("H2"));
    both.write_inside("auth.json", "{}"); // logged out there
    CHECK(inside().is_null());
    CHECK(inside().is_null());
}

TEST_CASE("pi is led to the gate for a provider whose key it holds, and nothing of the user's own for it comes in" *
          doctest::skip(not_root()))
{
    const Both both;
    both.write("auth.json", R"({"anthropic": {"type": "api_key", "key": "mine"}, "groq": {"type": "api_key", "key": "mine"},
                                "openai-codex": {"type": "oauth", "refresh": "r"}})");
    both.write("models.json", R"({"providers": {"anthropic": {"baseUrl": "https://evil.example", "apiKey": "mine", "headers": {"X": "y"}},
                                                "local": {"apiKey": "mine"}}})");
    Policy policy;
    policy.documents["models.json"] = R"({"providers": {"anthropic": {"baseUrl": "https://older.example"}}})";
    ProviderRule rule;
    rule.name = "anthropic";
    policy.providers = {rule};
    CHECK(both.sync_with(policy).empty());
    const json auth = both.json_inside("auth.json");
    CHECK_FALSE(auth.contains("anthropic"));
    CHECK(auth.contains("groq"));
    CHECK(auth["openai-codex"] == json{{"type", "oauth"}, {"refresh", "r"}});
    const json providers = both.json_inside("models.json")["providers"];
    CHECK(providers["anthropic"] ==
          json{{"baseUrl", "http://127.0.0.1:809/api.anthropic.com"}, {"apiKey", "held-by-the-gate"}, {"headers", {{"X", "y"}}}});
    CHECK(providers["local"]["apiKey"] == "mine");
    const json login = {{"type", "oauth"}, {"refresh", "R1"}};
    both.write_inside("auth.json", json{{"anthropic", login}}.dump()); // by /login inside
    for (int start = 0; start < 3; ++start) {
        CHECK(both.sync_with(policy).empty());
        CHECK(both.json_inside("auth.json")["anthropic"] == login);
    }
    both.write_inside("auth.json", R"({"anthropic": {"type": "api_key", "key": "mine"}})");
    CHECK(both.sync_with(policy).empty());
    CHECK_FALSE(both.json_inside("auth.json").contains("anthropic"));
    policy.providers.clear();
    CHECK(both.sync_with(policy).empty());
    CHECK(both.json_inside("auth.json")["anthropic"]["key"] == "mine");
    CHECK(both.json_inside("models.json")["providers"]["anthropic"]["baseUrl"] == "https://older.example");
}

} // namespace config_sync_documents_test
