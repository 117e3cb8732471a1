// What systemd reports about one service. It is asked only after something else came over the bus, because an answer takes long where it
// matters: as a unit ends, systemd starts the cleanup before it answers (16 ms, seen on 252).
#pragma once

#include "runner/root/method/systemd_bus.hpp"

#include <sdbus-c++/sdbus-c++.h>

namespace pi_agent {

// --- sdbus-c++ 1.2 and 2.x, where they differ.

inline constexpr const char *service_name_on_bus = "org.freedesktop.systemd1";
inline constexpr const char *properties_interface = "org.freedesktop.DBus.Properties";

#if defined(SDBUS_CPP_2)
using BusInterface = sdbus::InterfaceName;
using BusSignal = sdbus::SignalName;
#else
using BusInterface = std::string;
using BusSignal = std::string;
#endif

inline std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection &bus, const std::string &path, const char *name = service_name_on_bus)
{
#if defined(SDBUS_CPP_2)
    return sdbus::createProxy(bus, sdbus::ServiceName(name), sdbus::ObjectPath(path));
#else
    return sdbus::createProxy(bus, name, path);
#endif
}

inline void finish([[maybe_unused]] sdbus::IProxy &proxy)
{
#if !defined(SDBUS_CPP_2)
    proxy.finishRegistration();
#endif
}

// Where systemd has, or will have, the unit.
std::string path_of_unit(const std::string &name);

template <typename Value>
Value read_property(sdbus::IProxy &object, const char *interface, const char *name)
{
    sdbus::Variant value;
    object.callMethod("Get")
        .onInterface(properties_interface)
        .withTimeout(std::chrono::seconds(2))
        .withArguments(std::string(interface), std::string(name))
        .storeResultsTo(value);
    return value.get<Value>();
}

// --- The watch.

class ServiceWatch {
public:
    // Make it before the service is started, so that it misses nothing; somebody must have subscribed to systemd's signals. Throws
    // sdbus::Error.
    ServiceWatch(sdbus::IConnection &bus, const std::string &name);

    // Reads what has come over the bus.
    void process();
    SandboxResult result();
    // As systemd reports it, also after the end. Leaves out what it does not count, or does not know yet (MemoryPeak: from 255 on).
    UnitUsage usage();
    // When to look again though nothing comes over the bus: now or later, at the latest at `otherwise`.
    [[nodiscard]] Deadline next_look(Deadline otherwise) const;

private:
    using Job = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;
    struct State {
        std::string active;
        Job job;
        std::string result;
        std::int32_t code = 0;
        std::int32_t status = 0;
    };

    void hear(sdbus::Signal &signal);
    void ask();
    bool ask_patiently(); // false when there was no answer
    [[nodiscard]] bool has_ended() const;
    [[nodiscard]] bool has_unexplained_end() const;

    sdbus::IConnection &bus_;
    std::unique_ptr<sdbus::IProxy> unit_;
    std::string systemd_; // its unique name on the bus, which no other connection ever gets
    State state_;
    int heard_ = 0;
    bool must_ask_ = false;
    bool was_asked_ = false; // since it has ended
    Deadline next_question_{};
    int unanswered_ = 0;
};

} // namespace pi_agent
