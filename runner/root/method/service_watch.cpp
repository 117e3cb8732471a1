// Tells systemd's own signals from other senders' signals.
#include "runner/root/method/service_watch.hpp"

#include "common/seams/seams.hpp"

namespace pi_agent {

namespace {

constexpr const char *unit_interface = "org.freedesktop.systemd1.Unit";
constexpr const char *service_interface = "org.freedesktop.systemd1.Service";
constexpr const char *broker = "org.freedesktop.DBus";
constexpr const char *broker_path = "/org/freedesktop/DBus";

using Properties = std::map<std::string, sdbus::Variant>;

template <typename Value>
void take(const Properties &properties, const char *name, Value &into)
{
    const auto found = properties.find(name);
    if (found != properties.end()) into = found->second.get<Value>();
}

} // namespace

// Known before the unit exists, so that no signal of it is missed.
std::string path_of_unit(const std::string &name)
{
    std::string path = "/org/freedesktop/systemd1/unit/";
    for (const char byte : name) {
        const bool plain =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9' && path.back() != '/');
        if (plain) {
            path += byte;
            continue;
        }
        const auto value = static_cast<unsigned char>(byte);
        path += {'_', "0123456789abcdef"[value >> 4U], "0123456789abcdef"[value & 15U]};
    }
    return path;
}

ServiceWatch::ServiceWatch(sdbus::IConnection &bus, const std::string &name) : bus_(bus), unit_(make_proxy(bus, path_of_unit(name)))
{
    const auto asked = make_proxy(bus, broker_path, broker);
    finish(*asked);
    asked->callMethod("GetNameOwner").onInterface(broker).withArguments(std::string(service_name_on_bus)).storeResultsTo(systemd_);
    unit_->registerSignalHandler(BusInterface(properties_interface), BusSignal("PropertiesChanged"),
                                 [this](sdbus::Signal signal) { hear(signal); });
    finish(*unit_);
    process();
    must_ask_ = false; // what has come so far (the bus greets) is older than the unit
}

// The bus delivers signals that any local user addresses to us. A flood of them does not keep us here, and anything that does not come from
// systemd itself makes us ask systemd. So a lost signal or a restarted systemd cannot make us miss an end.
void ServiceWatch::process()
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

SandboxResult ServiceWatch::result()
{
    must_ask_ = must_ask_ || has_unexplained_end();
    if (must_ask_ && Clock::now() >= next_question_ && ask_patiently()) process(); // poll(2) does not see what came with the answers
    must_ask_ = must_ask_ || has_unexplained_end();
    if (must_ask_ && has_ended() && state_.code == 0) return SandboxResult{false, {}, 0, 0}; // not before systemd was asked
    return SandboxResult{has_ended(), state_.result, state_.code, state_.status};
}

UnitUsage ServiceWatch::usage()
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

// Believed only from the connection that owns systemd's name: the sender is the one thing that the bus itself writes into a message.
void ServiceWatch::hear(sdbus::Signal &signal)
{
    if (signal.getSender() != systemd_ && defence_is_on("signal-sender")) return;
    try {
        std::string interface;
        Properties changed;
        signal >> interface >> changed;
        if (interface == unit_interface) {
            take(changed, "ActiveState", state_.active);
            take(changed, "Job", state_.job);
        } else if (interface == service_interface) {
            take(changed, "Result", state_.result);
            take(changed, "ExecMainCode", state_.code);
            take(changed, "ExecMainStatus", state_.status);
        }
        ++heard_;
    } catch (const sdbus::Error &) { // NOLINT(bugprone-empty-catch): systemd is asked instead
    }
}

// Whoever fills our queue on the bus makes it drop systemd's answers: a missing one does not mean that the unit or the session ended.
bool ServiceWatch::ask_patiently()
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

Deadline ServiceWatch::next_look(Deadline otherwise) const
{
    return must_ask_ ? std::min(otherwise, next_question_) : otherwise;
}

void ServiceWatch::ask()
{
    // In this order: first without a job and then inactive means an end, whatever happens between the two.
    state_.job = read_property<Job>(*unit_, unit_interface, "Job");
    state_.active = read_property<std::string>(*unit_, unit_interface, "ActiveState");
    state_.result = read_property<std::string>(*unit_, service_interface, "Result");
    state_.code = read_property<std::int32_t>(*unit_, service_interface, "ExecMainCode");
    state_.status = read_property<std::int32_t>(*unit_, service_interface, "ExecMainStatus");
}

// Nothing has run in it. Or the bus, with no room for more, has dropped the one signal that reported it.
bool ServiceWatch::has_unexplained_end() const
{
    return has_ended() && state_.code == 0 && !was_asked_;
}

// Before its start job has run, a new unit is inactive too.
bool ServiceWatch::has_ended() const
{
    return (state_.active == "inactive" || state_.active == "failed") && state_.job.get<0>() == 0;
}

} // namespace pi_agent
