// The objects of systemd's on the bus, and a watch over one service, for systemd_bus.cpp alone. Tells systemd's own signals from other
// senders' signals.
#pragma once

#include "runner/root/method/systemd_bus.hpp"

#include <sdbus-c++/sdbus-c++.h>
#include <systemd/sd-bus.h>

namespace pi_agent {

inline constexpr const char *name_on_bus = "org.freedesktop.systemd1";
inline constexpr const char *unit_interface = "org.freedesktop.systemd1.Unit";
inline constexpr const char *service_interface = "org.freedesktop.systemd1.Service";
inline constexpr const char *properties_interface = "org.freedesktop.DBus.Properties";
inline constexpr const char *broker = "org.freedesktop.DBus";
inline constexpr const char *broker_path = "/org/freedesktop/DBus";

// --- sdbus-c++ 1.2 and 2.x, where they differ.

#if defined(SDBUS_CPP_2)
using BusInterface = sdbus::InterfaceName;
using BusSignal = sdbus::SignalName;
#else
using BusInterface = std::string;
using BusSignal = std::string;
#endif

inline std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection &bus, const std::string &path, const char *name = name_on_bus)
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

// Where systemd has, or will have, the unit: known before it exists, so that no signal of it is missed.
inline std::string path_of_unit(const std::string &name)
{
    char *path = nullptr;
    const int result = sd_bus_path_encode("/org/freedesktop/systemd1/unit", name.c_str(), &path);
    if (result < 0) throw SystemFailure(-result, "naming " + name + " on the bus");
    const std::unique_ptr<char, decltype(&std::free)> held(path, &std::free);
    return held.get();
}

// --- One service.

using BusProperties = std::map<std::string, sdbus::Variant>;

template <typename Value>
void take_property(const BusProperties &properties, const char *name, Value &into)
{
    const auto found = properties.find(name);
    if (found != properties.end()) into = found->second.get<Value>();
}

// What systemd reports about one service. It is asked only after something else came over the bus, because an answer takes long where it
// matters: as a unit ends, systemd starts the cleanup before it answers (16 ms, seen on 252).
class ServiceWatch {
public:
    // Make it before the service is started, so that it misses nothing; somebody must have subscribed to systemd's signals. Throws
    // sdbus::Error.
    ServiceWatch(sdbus::IConnection &bus, const std::string &name) : bus_(bus), unit_(make_proxy(bus, path_of_unit(name)))
    {
        const auto asked = make_proxy(bus, broker_path, broker);
        finish(*asked);
        asked->callMethod("GetNameOwner").onInterface(broker).withArguments(std::string(name_on_bus)).storeResultsTo(systemd_);
        unit_->registerSignalHandler(BusInterface(properties_interface), BusSignal("PropertiesChanged"),
                                     [this](sdbus::Signal signal) { hear(signal); });
        finish(*unit_);
        process();
        must_ask_ = false; // what has come so far (the bus greets) is older than the unit
    }

    // The bus delivers signals that any local user addresses to us. A flood of them does not keep us here, and anything that does not come
    // from systemd itself makes us ask systemd. So a lost signal or a restarted systemd cannot make us miss an end.
    void process()
    {
        constexpr int at_once = 64;
        const int heard_before = heard_;
        int count = 0;
        for (; count < at_once; ++count) {
#if defined(SDBUS_CPP_2)
            if (!bus_.processPendingEvent()) break;
#else
            if (!bus_.processPendingRequest()) break;
#endif
        }
        must_ask_ = must_ask_ || count != heard_ - heard_before || count == at_once;
    }

    SandboxResult result()
    {
        must_ask_ = must_ask_ || has_unexplained_end();
        if (must_ask_ && Clock::now() >= next_question_ && ask_patiently()) process(); // poll(2) does not see what came with the answers
        must_ask_ = must_ask_ || has_unexplained_end();
        if (must_ask_ && has_ended() && state_.code == 0) return SandboxResult{false, {}, 0, 0}; // not before systemd was asked
        return SandboxResult{has_ended(), state_.result, state_.code, state_.status};
    }

    UnitUsage usage()
    {
        const auto ask_for = [&](const char *name) -> std::optional<std::uint64_t> {
            try {
                const auto value = read_property<std::uint64_t>(*unit_, service_interface, name);
                return value == UINT64_MAX ? std::nullopt : std::optional<std::uint64_t>(value); // all ones: not known
            } catch (const sdbus::Error &) {                                                     // no such property
                return std::nullopt;
            }
        };
        UnitUsage usage{ask_for("MemoryPeak"), ask_for("CPUUsageNSec")};
        if (usage.cpu_usec) *usage.cpu_usec /= 1000;
        return usage;
    }

    Deadline next_look(Deadline otherwise) const
    {
        return must_ask_ ? std::min(otherwise, next_question_) : otherwise;
    }

private:
    using Job = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;
    struct State {
        std::string active;
        Job job;
        std::string result;
        std::int32_t code = 0;
        std::int32_t status = 0;
    };

    // Believed only from the connection that owns systemd's name: the sender is the one thing that the bus itself writes into a message.
    void hear(sdbus::Signal &signal)
    {
        if (signal.getSender() != systemd_ && defence_is_on("signal-sender")) return;
        try {
            std::string interface;
            BusProperties changed;
            signal >> interface >> changed;
            if (interface == unit_interface) {
                take_property(changed, "ActiveState", state_.active);
                take_property(changed, "Job", state_.job);
            } else if (interface == service_interface) {
                take_property(changed, "Result", state_.result);
                take_property(changed, "ExecMainCode", state_.code);
                take_property(changed, "ExecMainStatus", state_.status);
            }
            ++heard_;
        } catch (const sdbus::Error &) { // NOLINT(bugprone-empty-catch): systemd is asked instead
        }
    }

    // Whoever fills our queue on the bus makes it drop systemd's answers: a missing one does not mean that the unit or the session ended.
    bool ask_patiently()
    {
        constexpr int unanswered_limit = 30;
        try {
            ask();
        } catch (const sdbus::Error &) {
            if (++unanswered_ > unanswered_limit) throw;
            next_question_ = in_seconds(1);
            return false;
        }
        must_ask_ = false;
        was_asked_ = has_ended();
        unanswered_ = 0;
        return true;
    }

    void ask()
    {
        // In this order: first without a job and then inactive means an end, whatever happens between the two.
        state_.job = read_property<Job>(*unit_, unit_interface, "Job");
        state_.active = read_property<std::string>(*unit_, unit_interface, "ActiveState");
        state_.result = read_property<std::string>(*unit_, service_interface, "Result");
        state_.code = read_property<std::int32_t>(*unit_, service_interface, "ExecMainCode");
        state_.status = read_property<std::int32_t>(*unit_, service_interface, "ExecMainStatus");
    }

    // Nothing has run in it. Or the bus, with no room for more, has dropped the one signal that reported it.
    bool has_unexplained_end() const
    {
        return has_ended() && state_.code == 0 && !was_asked_;
    }

    // Before its start job has run, a new unit is inactive too.
    bool has_ended() const
    {
        return (state_.active == "inactive" || state_.active == "failed") && state_.job.get<0>() == 0;
    }

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
