// Sessions that the administrator ends: the reason lies in the session's directory, and its runner is told to end it.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/session/session_directory.hpp"
#include "runner/root/session/session_record.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pi_agent {

struct EndOrder {
    std::string session;
    std::string reason; // told to the user, and recorded
};

// Ends sessions and returns when nothing of them runs or is left any more: their runners ask the agents to end and kill them two seconds
// later. A runner that does not get to it is killed, and its session ends with it (design rule 9); what systemd and the cleanup have not
// done a moment later is done here, the record too. Takes less than 15 seconds (runner/wire/answer.hpp). Returns the sessions that do not
// end even so.
std::vector<std::string> end_sessions(const AsRoot &root, const std::vector<EndOrder> &orders);

// In the runner: tells the user, and the record, why the session ends, where somebody asked for it. Once, and at the latest when this ends.
class AskedEnd {
public:
    using Tell = std::function<void(const std::string &text)>;
    AskedEnd(const SessionDirectory &session, SessionRecord &record, Tell tell) : session_(session), record_(record), tell_(std::move(tell))
    {
    }
    AskedEnd(const AskedEnd &) = delete;
    AskedEnd &operator=(const AskedEnd &) = delete;
    AskedEnd(AskedEnd &&) = delete;
    AskedEnd &operator=(AskedEnd &&) = delete;
    ~AskedEnd() { explain(); }
    void explain() noexcept;
    [[nodiscard]] bool was_asked() const noexcept { return explained_; }

private:
    const SessionDirectory &session_;
    SessionRecord &record_;
    Tell tell_;
    bool explained_ = false;
};

} // namespace pi_agent
