// nix/schema.json, of which nix/keys.nix makes the options of the NixOS module, is what `pi-agentctl show --schema` prints.
#include "admin/apply/apply.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace policy_schema_test {

// To write it anew: PI_AGENT_WRITE_POLICY_PAGE=1
TEST_CASE("the schema of the NixOS module is what the table of keys says")
{
    const auto path = std::string(PI_AGENT_EXAMPLES) + "/../nix/schema.json";
    std::ostringstream schema;
    run_schema(schema);
    if (std::getenv("PI_AGENT_WRITE_POLICY_PAGE") != nullptr) { // NOLINT(concurrency-mt-unsafe)
        std::ofstream(path) << schema.str();
        return;
    }
    std::ifstream file(path);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    const bool same = text.str() == schema.str(); // doctest would print both
    CHECK_MESSAGE(same, "nix/schema.json is not what policy_keys.toml of common/policy says; PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

} // namespace policy_schema_test
