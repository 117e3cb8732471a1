// The one seam towards systemd (org.freedesktop.systemd1(5)). Only its source uses sdbus-c++. Every text that leaves here is in the
// property alphabet.
#pragma once

#include "common/host/identity.hpp"
#include "runner/plan/sandbox_plan.hpp"

namespace pi_agent {

struct CompanionUnit {
    std::string name;
    std::vector<UnitProperty> properties;
};

// Borrowed, copied by systemd. An empty one is what the service's properties say.
struct ServiceStreams {
    FdRef input;
    FdRef output;
    FdRef error;
};

class SystemdBus {
public:
    // Throws Failure(unavailable) when systemd does not answer.
    explicit SystemdBus(const AsRoot &root);
    SystemdBus(const SystemdBus &) = delete;
    SystemdBus &operator=(const SystemdBus &) = delete;
    ~SystemdBus();

    // Makes systemd move this process into a scope of its own. Does not wait: wait_until_inside() (control_group.hpp) does.
    void request_scope(const std::string &name, const std::vector<UnitProperty> &properties);
    // Of the version that runs. And that version in systemd's own words, for any account.
    const SystemdFeatures &features();
    static std::string version_for_anybody();
    // From here on service_result() is about this service. Call it before start_service(), so that it misses nothing.
    void watch_service(const std::string &name);
    // Queues the start, with another unit that it needs.
    void start_service(const std::string &name, const std::vector<UnitProperty> &properties, const CompanionUnit &cleanup,
                       const ServiceStreams &streams);
    // The same for a service alone. Where it does not wait for the answer, which takes systemd 3 ms, nobody hears of a refusal: ask again.
    void start_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams,
                       bool waits = true);
    // Queues the stop; a unit that is gone is fine.
    void stop_unit(const std::string &name);
    bool unit_exists(const std::string &name);
    // The host's own files that change the unit; none where there is no such unit.
    std::vector<std::string> drop_ins(const std::string &name);
    // Of the service that is watched.
    SandboxResult service_result();
    // As systemd reports it, also after the end. Leaves out what it does not count, or does not know yet (MemoryPeak: from 255 on).
    UnitUsage service_usage();

    // For poll(2): wait for input on fd until next_look(), then call process().
    [[nodiscard]] FdRef fd() const;
    [[nodiscard]] Deadline next_look(Deadline otherwise) const;
    void process();

private:
    struct Connection;
    std::unique_ptr<Connection> connection_;
    std::optional<SystemdFeatures> features_; // once it was asked
};

} // namespace pi_agent
