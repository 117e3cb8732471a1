// Who may run the cleanup of a session: runner/root/confined/session_end.hpp
#include "runner/root/confined/session_end.hpp"

#include "runner/root/session/session_directory.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <filesystem>

using namespace pi_agent;
using namespace pi_agent::test;

namespace cleanup_test {

TEST_CASE("only a session's own unit cleans it up; by hand nothing is touched" * doctest::skip(not_root()))
{
    const std::string said = in_private_run([]() -> std::string {
        const AsRoot root = AsRoot::claim();
        const std::string id = make_session_id();
        std::string path;
        {
            const auto session = SessionDirectory::create(root, id, Uid(1000));
            session.make_directory("root");
            path = session.path();
        }
        const Caught caught = failure_of([&] {
            clean_up_after_unit(root, id);
            return 0;
        });
        const bool named = has(caught.text, "the unit " + cleanup_name(id) + " starts this program; do not run it by hand");
        return std::to_string(caught.status) + (named ? ", named" : caught.text) +
               (std::filesystem::exists(path + "/root") ? ", kept" : "");
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == "77, named, kept");
}

} // namespace cleanup_test
