// Asks the runner about the caller's own sessions.
#include "admin/sessions/own_questions.hpp"

#include "common/ask/runner_process.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy_load.hpp"

#include <unistd.h>
#include <utility>
#include <variant>

namespace pi_agent {

void require_own(const std::string &command, const std::optional<std::string> &user, const std::string &why)
{
    const auto refuse = [&](const std::string &what) {
        throw Failure(FailureKind::root_only, command + " " + what + "; run: sudo pi-agentctl " + command);
    };
    require_sudo_can_work();
    const std::optional<Account> caller = find_account(Uid(::getuid()));
    if (!caller) refuse("finds no user with your number on this host, so only root can run it");
    if (user && *user != caller->name)
        refuse(why + ", so only root can run it with --user " + escape_for_display(*user) + " (without --user it is about your own)");
    // A polite look: what counts is root's own.
    const Policy policy = load_policy_to_start(policy_path, caller->name);
    if (std::holds_alternative<NotAuthorised>(find_access_rules(policy, *caller, policy_path)))
        refuse(why + ", and the policy gives you no sessions of your own, so only root can run it");
}

OwnAnswer ask_own(const OwnQuestion &question)
{
    OwnReply reply = decode_reply(ask_runner(encode(question)));
    if (const auto *failure = std::get_if<FailureReport>(&reply)) throw Failure(failure->status, failure->kind, failure->text);
    return std::get<OwnAnswer>(std::move(reply));
}

} // namespace pi_agent
