// The one seam towards systemd; serves sdbus-c++ 1.2 and 2.x.
#include "runner/root/method/systemd_bus.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/service_watch.hpp"

#include <sys/socket.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr const char *manager_path = "/org/freedesktop/systemd1";
constexpr const char *manager_interface = "org.freedesktop.systemd1.Manager";

// What systemd does about a job that waits (systemctl(1), --job-mode=). A slice that its last unit has just left is about to be stopped,
// and then the start of the next one is refused with "fail"; with "replace" the slice stays. A session's service is bound to a scope, which
// in its slice lives: were that about to be stopped, "replace" would start it anew, with nobody in it.
constexpr const char *unless_in_the_way = "fail";
constexpr const char *though_its_slice_goes = "replace";

using BusProperty = sdbus::Struct<std::string, sdbus::Variant>;
using AuxiliaryUnit = sdbus::Struct<std::string, std::vector<BusProperty>>;

[[noreturn]] void refuse(const std::string &action, const sdbus::Error &error)
{
    throw Failure(ExitStatus::unavailable,
                  action + " failed: " + escape_for_display(error.getMessage()) +
                      "; does this host run systemd and its system bus? see: systemctl status; where systemd does not run, the policy can "
                      "say sandbox: {method: bwrap} (man pi-agent-policy)");
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
    sdbus::Variant operator()(const AddressRanges &value) const
    {
        std::vector<sdbus::Struct<std::int32_t, std::vector<std::uint8_t>, std::uint32_t>> list;
        for (const auto &range : value.ranges)
            list.emplace_back(range.is_v6() ? AF_INET6 : AF_INET, range.address, range.prefix);
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

void add_streams(const ServiceStreams &streams, std::vector<BusProperty> &properties)
{
    const std::pair<const char *, FdRef> named[] = {{"StandardInputFileDescriptor", streams.input},
                                                    {"StandardOutputFileDescriptor", streams.output},
                                                    {"StandardErrorFileDescriptor", streams.error}};
    for (const auto &[name, fd] : named)
        if (fd.get() >= 0) properties.emplace_back(name, sdbus::Variant(sdbus::UnixFd(fd.get())));
}

} // namespace

class SystemdBus::Connection {
public:
    Connection() : bus_(sdbus::createSystemBusConnection()), manager_(make_proxy(*bus_, manager_path)) { finish(*manager_); }

    void start_unit(const std::string &name, const std::string &mode, const std::vector<BusProperty> &properties,
                    const std::vector<AuxiliaryUnit> &others)
    {
        sdbus::ObjectPath job;
        manager_->callMethod("StartTransientUnit")
            .onInterface(manager_interface)
            .withArguments(name, mode, properties, others)
            .storeResultsTo(job);
    }

    void watch(const std::string &name)
    {
        // systemd sends PropertiesChanged only while somebody has subscribed. It takes what we send in order, so no answer is waited for.
        manager_->callMethod("Subscribe").onInterface(manager_interface).dontExpectReply();
        service_ = std::make_unique<ServiceWatch>(*bus_, name);
    }

    ServiceWatch &service() { return *service_; }

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

    [[nodiscard]] int fd() const { return bus_->getEventLoopPollData().fd; }

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
    std::unique_ptr<ServiceWatch> service_;
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
        connection_->start_unit(safe(name), though_its_slice_goes, list, {});
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
                               const ServiceStreams &streams)
{
    try {
        std::vector<BusProperty> list = to_bus(properties);
        add_streams(streams, list);
        connection_->start_unit(safe(name), unless_in_the_way, list, {AuxiliaryUnit(safe(cleanup.name), to_bus(cleanup.properties))});
    } catch (const sdbus::Error &error) {
        refuse("starting the session's unit", error);
    }
}

void SystemdBus::start_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams)
{
    try {
        std::vector<BusProperty> list = to_bus(properties);
        add_streams(streams, list);
        connection_->start_unit(safe(name), though_its_slice_goes, list, {});
    } catch (const sdbus::Error &error) {
        refuse("starting a program's unit", error);
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

SandboxResult SystemdBus::service_result()
{
    try {
        return connection_->service().result();
    } catch (const sdbus::Error &error) {
        refuse("reading the session's result", error);
    }
}

UnitUsage SystemdBus::service_usage()
{
    return connection_->service().usage();
}

Deadline SystemdBus::next_look(Deadline otherwise) const
{
    return connection_->service().next_look(otherwise);
}

FdRef SystemdBus::fd() const
{
    return FdRef(connection_->fd());
}

void SystemdBus::process()
{
    try {
        connection_->service().process();
    } catch (const sdbus::Error &error) {
        refuse("listening to systemd", error);
    }
}

} // namespace pi_agent
