// The one seam towards systemd; serves sdbus-c++ 1.2 and 2.x.
#include "runner/systemd_bus.hpp"

#include "common/defence.hpp"
#include "common/error.hpp"
#include "common/escape.hpp"

#include <sdbus-c++/sdbus-c++.h>

#include <map>
#include <type_traits>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *service_name_on_bus = "org.freedesktop.systemd1";
constexpr const char *manager_path = "/org/freedesktop/systemd1";
constexpr const char *manager_interface = "org.freedesktop.systemd1.Manager";
constexpr const char *unit_interface = "org.freedesktop.systemd1.Unit";
constexpr const char *service_interface = "org.freedesktop.systemd1.Service";
constexpr const char *properties_interface = "org.freedesktop.DBus.Properties";
constexpr const char *broker = "org.freedesktop.DBus";
constexpr const char *broker_path = "/org/freedesktop/DBus";

using BusProperty = sdbus::Struct<std::string, sdbus::Variant>;
using AuxiliaryUnit = sdbus::Struct<std::string, std::vector<BusProperty>>;
using Properties = std::map<std::string, sdbus::Variant>;
using JobOfUnit = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;

[[noreturn]] void refuse(const std::string &action, const sdbus::Error &error)
{
    throw Failure(ExitStatus::unavailable, action + " failed: " + escape_for_display(error.getMessage()) +
                                               "; does this host run systemd and its system bus? see: systemctl status");
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
    sdbus::Variant operator()(bool value) const { return sdbus::Variant(value); }
    sdbus::Variant operator()(std::uint32_t value) const { return sdbus::Variant(value); }
    sdbus::Variant operator()(std::uint64_t value) const { return sdbus::Variant(value); }
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
        std::vector<sdbus::Struct<std::string, std::string, bool, std::uint64_t>> list;
        for (const auto &bind : value.binds)
            list.emplace_back(safe(bind.source), safe(bind.target), false, recursive);
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const TemporaryFileSystems &value) const
    {
        std::vector<sdbus::Struct<std::string, std::string>> list;
        for (const auto &[path, options] : value.entries)
            list.emplace_back(safe(path), safe(options));
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const Command &value) const
    {
        std::vector<sdbus::Struct<std::string, std::vector<std::string>, bool>> list;
        list.emplace_back(safe(value.arguments.at(0)), safe(value.arguments), false);
        return sdbus::Variant(list);
    }
};

std::vector<BusProperty> to_bus(const std::vector<UnitProperty> &properties)
{
    std::vector<BusProperty> list;
    list.reserve(properties.size());
    for (const auto &property : properties)
        if (defence_is_on(("unit:" + property.name).c_str())) list.emplace_back(property.name, std::visit(ToVariant{}, property.value));
    return list;
}

std::unique_ptr<sdbus::IProxy> make_proxy(sdbus::IConnection &bus, const std::string &path, const char *name = service_name_on_bus)
{
#if defined(SDBUS_CPP_2)
    return sdbus::createProxy(bus, sdbus::ServiceName(name), sdbus::ObjectPath(path));
#else
    return sdbus::createProxy(bus, name, path);
#endif
}

// Where systemd has, or will have, the unit: known before it exists, so that none of its signals is missed.
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

void finish([[maybe_unused]] sdbus::IProxy &proxy)
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
        .withArguments(std::string(interface), std::string(name))
        .storeResultsTo(value);
    return value.get<Value>();
}

template <typename Value>
void take(const Properties &properties, const char *name, Value &into)
{
    const auto found = properties.find(name);
    if (found != properties.end()) into = found->second.get<Value>();
}

// A service as systemd describes it.
struct ServiceState {
    std::string active;
    JobOfUnit job;
    std::string result;
    std::int32_t code = 0;
    std::int32_t status = 0;

    // Before its start job has run, a new unit is inactive too.
    [[nodiscard]] bool has_ended() const { return (active == "inactive" || active == "failed") && job.get<0>() == 0; }
};

} // namespace

class SystemdBus::Connection {
public:
    Connection() : bus_(sdbus::createSystemBusConnection()), manager_(make_proxy(*bus_, manager_path)) { finish(*manager_); }

    void start_unit(const std::string &name, const std::vector<BusProperty> &properties, const std::vector<AuxiliaryUnit> &others)
    {
        sdbus::ObjectPath job;
        manager_->callMethod("StartTransientUnit")
            .onInterface(manager_interface)
            .withArguments(name, std::string("fail"), properties, others)
            .storeResultsTo(job);
    }

    void watch(const std::string &name)
    {
        const auto bus = make_proxy(*bus_, broker_path, broker);
        finish(*bus);
        bus->callMethod("GetNameOwner").onInterface(broker).withArguments(std::string(service_name_on_bus)).storeResultsTo(systemd_);
        unit_ = make_proxy(*bus_, path_of_unit(name));
        unit_->registerSignalHandler(properties_interface, "PropertiesChanged", [this](sdbus::Signal signal) { hear(signal); });
        finish(*unit_);
        // systemd sends PropertiesChanged only while somebody has subscribed. It takes what we send in order, so no answer is waited for.
        manager_->callMethod("Subscribe").onInterface(manager_interface).dontExpectReply();
        process();
        must_ask_ = false; // what came until now (the bus greets) is from before the unit
    }

    const ServiceState &service()
    {
        // Nothing has run in it: or the bus, with no room for more, has dropped the one signal that told of it.
        if (service_.has_ended() && service_.code == 0) must_ask_ = true;
        if (must_ask_) {
            must_ask_ = false;
            ask();
            process(); // poll(2) does not know of what came together with the answers
        }
        return service_;
    }

    [[nodiscard]] bool has_more() const noexcept { return must_ask_; }

    void stop(const std::string &name)
    {
        try {
            sdbus::ObjectPath job;
            manager_->callMethod("StopUnit").onInterface(manager_interface).withArguments(name, std::string("replace")).storeResultsTo(job);
        } catch (const sdbus::Error &error) {
            if (error.getName() != "org.freedesktop.systemd1.NoSuchUnit") throw;
        }
    }

    bool exists(const std::string &name)
    {
        try {
            sdbus::ObjectPath path;
            manager_->callMethod("GetUnit").onInterface(manager_interface).withArguments(name).storeResultsTo(path);
            return true;
        } catch (const sdbus::Error &error) {
            if (error.getName() != "org.freedesktop.systemd1.NoSuchUnit") throw;
            return false;
        }
    }

    std::string version() { return read_property<std::string>(*manager_, manager_interface, "Version"); }

    // The bus delivers signals that any local user addresses to us: a flood of them does not keep us here, and whatever comes that is not
    // systemd's own word makes us ask systemd. So nobody can make us miss an end, by a lost signal or a restarted systemd.
    void process()
    {
        constexpr int at_once = 64;
        const int heard_before = heard_;
        int count = 0;
        for (; count < at_once; ++count) {
#if defined(SDBUS_CPP_2)
            if (!bus_->processPendingEvent()) break;
#else
            if (!bus_->processPendingRequest()) break;
#endif
        }
        must_ask_ = must_ask_ || count != heard_ - heard_before || count == at_once;
    }

    [[nodiscard]] int fd() const
    {
        return bus_->getEventLoopPollData().fd;
    }

private:
    // Believed only from the connection that owns systemd's name: the sender is the one thing that the bus itself writes into a message.
    void hear(sdbus::Signal &signal)
    {
        if (signal.getSender() != systemd_ && defence_is_on("signal-sender")) return;
        try {
            std::string interface;
            Properties changed;
            signal >> interface >> changed;
            if (interface == unit_interface) {
                take(changed, "ActiveState", service_.active);
                take(changed, "Job", service_.job);
            } else if (interface == service_interface) {
                take(changed, "Result", service_.result);
                take(changed, "ExecMainCode", service_.code);
                take(changed, "ExecMainStatus", service_.status);
            }
            ++heard_;
        } catch (const sdbus::Error &) { // NOLINT(bugprone-empty-catch): what is not understood is asked for
        }
    }

    void ask()
    {
        service_.active = read_property<std::string>(*unit_, unit_interface, "ActiveState");
        service_.job = read_property<JobOfUnit>(*unit_, unit_interface, "Job");
        service_.result = read_property<std::string>(*unit_, service_interface, "Result");
        service_.code = read_property<std::int32_t>(*unit_, service_interface, "ExecMainCode");
        service_.status = read_property<std::int32_t>(*unit_, service_interface, "ExecMainStatus");
    }

    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
    std::unique_ptr<sdbus::IProxy> unit_;
    std::string systemd_; // its name of its own on the bus, which no other connection ever gets
    ServiceState service_;
    int heard_ = 0;
    bool must_ask_ = false;
};

SystemdBus::SystemdBus(const AsRoot & /*root*/)
{
    try {
        connection_ = std::make_unique<Connection>();
    } catch (const sdbus::Error &error) {
        refuse("connecting to systemd", error);
    }
}

SystemdBus::~SystemdBus() = default;

void SystemdBus::request_scope(const std::string &name, const std::vector<UnitProperty> &properties)
{
    try {
        std::vector<BusProperty> list = to_bus(properties);
        list.emplace_back("PIDs", sdbus::Variant(std::vector<std::uint32_t>{static_cast<std::uint32_t>(getpid())}));
        connection_->start_unit(safe(name), list, {});
    } catch (const sdbus::Error &error) {
        refuse("making the runner's scope", error);
    }
}

std::string SystemdBus::version()
{
    try {
        return connection_->version();
    } catch (const sdbus::Error &error) {
        refuse("asking systemd for its version", error);
    }
}

void SystemdBus::watch_service(const std::string &name)
{
    try {
        connection_->watch(safe(name));
    } catch (const sdbus::Error &error) {
        refuse("watching the session's unit", error);
    }
}

void SystemdBus::start_service(const std::string &name, const std::vector<UnitProperty> &properties, const CompanionUnit &cleanup,
                               FdRef standard_input)
{
    try {
        std::vector<BusProperty> list = to_bus(properties);
        list.emplace_back("StandardInputFileDescriptor", sdbus::Variant(sdbus::UnixFd(standard_input.get())));
        connection_->start_unit(safe(name), list, {AuxiliaryUnit(safe(cleanup.name), to_bus(cleanup.properties))});
    } catch (const sdbus::Error &error) {
        refuse("starting the session's unit", error);
    }
}

void SystemdBus::stop_unit(const std::string &name)
{
    try {
        connection_->stop(safe(name));
    } catch (const sdbus::Error &error) {
        refuse("stopping " + name, error);
    }
}

bool SystemdBus::unit_exists(const std::string &name)
{
    try {
        return connection_->exists(safe(name));
    } catch (const sdbus::Error &error) {
        refuse("asking for " + name, error);
    }
}

std::string SystemdBus::version_for_anybody()
{
    try {
        return Connection().version();
    } catch (const sdbus::Error &error) {
        refuse("asking systemd for its version", error);
    }
}

ServiceResult SystemdBus::service_result()
{
    try {
        const ServiceState &seen = connection_->service();
        return ServiceResult{seen.has_ended(), seen.result, seen.code, seen.status};
    } catch (const sdbus::Error &error) {
        refuse("reading the session's result", error);
    }
}

bool SystemdBus::has_more() const noexcept
{
    return connection_->has_more();
}

FdRef SystemdBus::fd() const
{
    return FdRef(connection_->fd());
}

void SystemdBus::process()
{
    try {
        connection_->process();
    } catch (const sdbus::Error &error) {
        refuse("listening to systemd", error);
    }
}

} // namespace pi_agent
