// The one seam towards systemd; serves sdbus-c++ 1.2 and 2.x.
#include "runner/root/method/sandbox.hpp"

#include <sdbus-c++/sdbus-c++.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

namespace pi_agent {

namespace {

constexpr const char *name_on_bus = "org.freedesktop.systemd1";
constexpr const char *unit_interface = "org.freedesktop.systemd1.Unit";
constexpr const char *service_interface = "org.freedesktop.systemd1.Service";
constexpr const char *properties_interface = "org.freedesktop.DBus.Properties";
constexpr const char *broker = "org.freedesktop.DBus";
constexpr const char *broker_path = "/org/freedesktop/DBus";
constexpr const char *manager_path = "/org/freedesktop/systemd1";
constexpr const char *manager_interface = "org.freedesktop.systemd1.Manager";

// What systemd does about a job that waits (systemctl(1), --job-mode=). When the last unit of a slice has just left, systemd is about to
// stop the slice, and "fail" then refuses the start of the next unit. "replace" keeps the slice. A session's service is bound to a scope in
// the runner's slice: were that scope about to stop, "replace" would start it again, with nobody in it.
const std::string unless_in_the_way = "fail";
const std::string though_its_slice_goes = "replace";

using BusProperty = sdbus::Struct<std::string, sdbus::Variant>;
using AuxiliaryUnit = sdbus::Struct<std::string, std::vector<BusProperty>>;
const std::vector<AuxiliaryUnit> no_others;
constexpr ServiceStreams no_streams{FdRef(-1), FdRef(-1), FdRef(-1)};
constexpr const char *start_method = "StartTransientUnit";
constexpr const char *for_version = "asking systemd for its version";

[[noreturn]] void refuse(const std::string &action, const sdbus::Error &error)
{
    const std::string what = action + " failed: " + escape_for_display(error.getMessage());
    if (error.getName() == "org.freedesktop.systemd1.BadUnitSetting")
        throw Failure(FailureKind::sandbox_method, what + " " + without_drop_ins);
    throw Failure(FailureKind::no_systemd, what +
                                               "; the administrator checks with systemctl status whether systemd and its system bus run. "
                                               "Where systemd does not run, the policy can use sandbox: {method: bwrap}");
}

template <typename Call>
auto asking(const std::string &action, const Call &call) -> decltype(call())
{
    try {
        return call();
    } catch (const sdbus::Error &error) {
        refuse(action, error);
    }
}

// Design rule 2: a newline in a path property was once run as a command by root. No byte outside the alphabet leaves this file.
const std::string &safe(const std::string &text)
{
    if (!is_property_safe(text) && defence_is_on("property-alphabet"))
        throw Failure(ExitStatus::internal, "a unit property would contain " + escape_for_display(text));
    return text;
}

const std::vector<std::string> &safe(const std::vector<std::string> &texts)
{
    for (const auto &text : texts)
        safe(text);
    return texts;
}

struct ToVariant {
    sdbus::Variant operator()(std::integral auto value) const { return sdbus::Variant(value); }
    sdbus::Variant operator()(SignedNumber value) const { return sdbus::Variant(value.value); }
    sdbus::Variant operator()(const std::string &value) const { return sdbus::Variant(safe(value)); }
    sdbus::Variant operator()(const std::vector<std::string> &value) const { return sdbus::Variant(safe(value)); }
    sdbus::Variant operator()(const NameFilter &value) const
    {
        return sdbus::Variant(sdbus::Struct<bool, std::vector<std::string>>{value.allow, safe(value.names)});
    }
    sdbus::Variant operator()(const BindList &value) const
    {
        constexpr std::uint64_t recursive = 1U << 14U; // MS_REC, as systemd.exec(5) "rbind"
        const auto list = mapped(value.binds, [&](const auto &bind) {
            return sdbus::Struct<std::string, std::string, bool, std::uint64_t>(safe(bind.source), safe(bind.target), bind.may_be_missing,
                                                                                recursive);
        });
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const PairList &value) const
    {
        const auto list = mapped(value.entries, [](const auto &entry) {
            return sdbus::Struct<std::string, std::string>(safe(entry.first), safe(entry.second));
        });
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const AddressRanges &value) const
    {
        const auto list = mapped(value.ranges, [&](const auto &range) {
            return sdbus::Struct<std::int32_t, std::vector<std::uint8_t>, std::uint32_t>(range.is_v6() ? AF_INET6 : AF_INET, range.address,
                                                                                         range.prefix);
        });
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const ExitStatuses &value) const
    {
        return sdbus::Variant(sdbus::Struct<std::vector<std::int32_t>, std::vector<std::int32_t>>{value.statuses, value.signals});
    }
    sdbus::Variant operator()(const Command &value) const
    {
        std::vector<sdbus::Struct<std::string, std::vector<std::string>, bool>> list;
        list.emplace_back(safe(value.arguments.at(0)), safe(value.arguments), false);
        return sdbus::Variant(list);
    }
};

std::vector<BusProperty> to_bus(const std::vector<UnitProperty> &properties, const ServiceStreams &streams = no_streams)
{
    std::vector<BusProperty> list;
    list.reserve(properties.size());
    for (const auto &property : properties)
        if (defence_is_on(("unit:" + property.name).c_str())) list.emplace_back(property.name, std::visit(ToVariant{}, property.value));
    const std::pair<const char *, FdRef> named[] = {{"StandardInputFileDescriptor", streams.input},
                                                    {"StandardOutputFileDescriptor", streams.output},
                                                    {"StandardErrorFileDescriptor", streams.error}};
    for (const auto &[name, fd] : named)
        if (fd.get() >= 0) list.emplace_back(name, sdbus::Variant(sdbus::UnixFd(fd.get())));
    return list;
}

// --- sdbus-c++ 1.2 and 2.x, where they differ.

#if defined(SDBUS_CPP_2)
using sdbus::InterfaceName;
using sdbus::ServiceName;
using sdbus::SignalName;
constexpr auto process_one = &sdbus::IConnection::processPendingEvent;
void finish(sdbus::IProxy & /*proxy*/) {}
#else
using InterfaceName = std::string;
using ServiceName = std::string;
using SignalName = std::string;
constexpr auto process_one = &sdbus::IConnection::processPendingRequest;
void finish(sdbus::IProxy &proxy)
{
    proxy.finishRegistration();
}
#endif

std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection &bus, const std::string &path, const char *name = name_on_bus)
{
    return sdbus::createProxy(bus, ServiceName(name), sdbus::ObjectPath(path));
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
std::string path_of_unit(const std::string &name)
{
    char *path = nullptr;
    const int result = sd_bus_path_encode("/org/freedesktop/systemd1/unit", name.c_str(), &path);
    if (result < 0) throw SystemFailure(-result, "naming " + name + " on the bus");
    const std::unique_ptr<char, decltype(&std::free)> held(path, &std::free);
    return held.get();
}

} // namespace

// --- One service.

// What systemd reports about one service. It is asked only after something else came over the bus, because an answer takes long where it
// matters: as a unit ends, systemd starts the cleanup before it answers (16 ms, seen on 252). Tells systemd's own signals from other
// senders' signals.
class ServiceWatch {
public:
    // Make it before the service is started, so that it misses nothing; somebody must have subscribed to systemd's signals. Throws
    // sdbus::Error.
    ServiceWatch(sdbus::IConnection &bus, const std::string &name) : bus_(bus), unit_(make_proxy(bus, path_of_unit(name)))
    {
        const auto asked = make_proxy(bus, broker_path, broker);
        finish(*asked);
        asked->callMethod("GetNameOwner").onInterface(broker).withArguments(std::string(name_on_bus)).storeResultsTo(systemd_);
        unit_->registerSignalHandler(InterfaceName(properties_interface), SignalName("PropertiesChanged"),
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
        while (count < at_once && (bus_.*process_one)())
            ++count;
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

    Deadline next_look(Deadline otherwise) const { return must_ask_ ? std::min(otherwise, next_question_) : otherwise; }

private:
    using Job = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;
    struct State {
        std::string active;
        Job job;
        std::string result;
        std::int32_t code = 0;
        std::int32_t status = 0;

        // systemd is asked in this order: first without a job and then inactive means an end, whatever happens between the two.
        template <typename Visit>
        void each(const Visit &visit)
        {
            visit(unit_interface, "Job", job);
            visit(unit_interface, "ActiveState", active);
            visit(service_interface, "Result", result);
            visit(service_interface, "ExecMainCode", code);
            visit(service_interface, "ExecMainStatus", status);
        }
    };

    // Believed only from the connection that owns systemd's name: the sender is the one thing that the bus itself writes into a message.
    void hear(sdbus::Signal &signal)
    {
        if (signal.getSender() != systemd_ && defence_is_on("signal-sender")) return;
        try {
            std::string interface;
            std::map<std::string, sdbus::Variant> changed;
            signal >> interface >> changed;
            state_.each([&](const char *its_interface, const char *name, auto &value) {
                const auto found = interface == its_interface ? changed.find(name) : changed.end();
                if (found != changed.end()) value = found->second.get<std::decay_t<decltype(value)>>();
            });
            ++heard_;
        } catch (const sdbus::Error &) { // NOLINT(bugprone-empty-catch): systemd is asked instead
        }
    }

    // Whoever fills our queue on the bus makes it drop systemd's answers: a missing one does not mean that the unit or the session ended.
    bool ask_patiently()
    {
        constexpr int unanswered_limit = 30;
        try {
            state_.each([&](const char *interface, const char *name, auto &value) {
                value = read_property<std::decay_t<decltype(value)>>(*unit_, interface, name);
            });
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

    // Nothing has run in it. Or the bus, with no room for more, has dropped the one signal that reported it.
    [[nodiscard]] bool has_unexplained_end() const { return has_ended() && state_.code == 0 && !was_asked_; }

    // Before its start job has run, a new unit is inactive too.
    [[nodiscard]] bool has_ended() const { return (state_.active == "inactive" || state_.active == "failed") && state_.job.get<0>() == 0; }

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

struct SystemdBus::Connection {
    std::unique_ptr<sdbus::IConnection> bus = sdbus::createSystemBusConnection();
    std::unique_ptr<sdbus::IProxy> manager = make_proxy(*bus, manager_path);
    std::unique_ptr<ServiceWatch> service;

    Connection() { finish(*manager); }

    template <typename... Arguments>
    void call(const char *method, const Arguments &...arguments)
    {
        sdbus::ObjectPath job;
        manager->callMethod(method).onInterface(manager_interface).withArguments(arguments...).storeResultsTo(job);
    }

    // The same without waiting for an answer. systemd handles our calls in order.
    template <typename... Arguments>
    void tell(const char *method, const Arguments &...arguments)
    {
        manager->callMethod(method).onInterface(manager_interface).withArguments(arguments...).dontExpectReply();
    }

    // False where there is no such unit.
    template <typename... Arguments>
    bool call_for_unit(const char *method, const Arguments &...arguments)
    {
        try {
            call(method, arguments...);
            return true;
        } catch (const sdbus::Error &error) {
            if (error.getName() != "org.freedesktop.systemd1.NoSuchUnit") throw;
            return false;
        }
    }

    [[nodiscard]] std::string version() const { return read_property<std::string>(*manager, manager_interface, "Version"); }
};

SystemdBus::SystemdBus(const AsRoot & /*root*/)
    : connection_(asking("connecting to systemd", [] { return std::make_unique<Connection>(); }))
{
}

SystemdBus::~SystemdBus() = default;

void SystemdBus::request_scope(const std::string &name, const std::vector<UnitProperty> &properties)
{
    asking("making the runner's scope", [&] {
        std::vector<BusProperty> list = to_bus(properties);
        list.emplace_back("PIDs", sdbus::Variant(std::vector<std::uint32_t>{static_cast<std::uint32_t>(getpid())}));
        connection_->call(start_method, safe(name), though_its_slice_goes, list, no_others);
    });
}

const SystemdFeatures &SystemdBus::features()
{
    if (!features_) features_ = systemd_features(asking(for_version, [&] { return connection_->version(); }));
    return *features_;
}

void SystemdBus::watch_service(const std::string &name)
{
    asking("watching the session's unit", [&] {
        safe(name);
        connection_->tell("Subscribe"); // systemd sends PropertiesChanged only while somebody has subscribed
        connection_->service = std::make_unique<ServiceWatch>(*connection_->bus, name);
    });
}

void SystemdBus::start_service(const std::string &name, const std::vector<UnitProperty> &properties, const CompanionUnit &cleanup,
                               const ServiceStreams &streams)
{
    asking("starting the session's unit", [&] {
        const std::vector<AuxiliaryUnit> others = {AuxiliaryUnit(safe(cleanup.name), to_bus(cleanup.properties))};
        connection_->call(start_method, safe(name), unless_in_the_way, to_bus(properties, streams), others);
    });
}

void SystemdBus::start_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams,
                               bool waits)
{
    asking("starting a program's unit", [&] {
        const auto list = to_bus(properties, streams);
        if (waits) return connection_->call(start_method, safe(name), though_its_slice_goes, list, no_others);
        connection_->tell(start_method, safe(name), though_its_slice_goes, list, no_others);
    });
}

void SystemdBus::stop_unit(const std::string &name)
{
    asking("stopping " + name, [&] { connection_->call_for_unit("StopUnit", safe(name), std::string("replace")); });
}

bool SystemdBus::unit_exists(const std::string &name)
{
    return asking("asking for " + name, [&] { return connection_->call_for_unit("GetUnit", safe(name)); });
}

std::vector<std::string> SystemdBus::drop_ins(const std::string &name)
{
    return asking("asking for the drop-ins of " + name, [&] {
        const auto unit = make_proxy(*connection_->bus, path_of_unit(safe(name)));
        finish(*unit);
        return read_property<std::vector<std::string>>(*unit, unit_interface, "DropInPaths");
    });
}

std::string SystemdBus::version_for_anybody()
{
    return asking(for_version, [] { return Connection().version(); });
}

SandboxResult SystemdBus::service_result()
{
    return asking("reading the session's result", [&] { return connection_->service->result(); });
}

UnitUsage SystemdBus::service_usage()
{
    return connection_->service->usage();
}

Deadline SystemdBus::next_look(Deadline otherwise) const
{
    return connection_->service->next_look(otherwise);
}

FdRef SystemdBus::fd() const
{
    return FdRef(connection_->bus->getEventLoopPollData().fd);
}

void SystemdBus::process()
{
    asking("listening to systemd", [&] { connection_->service->process(); });
}

} // namespace pi_agent
