// The one seam towards systemd; serves sdbus-c++ 1.2 and 2.x.
#include "runner/root/method/systemd_bus.hpp"

#include "runner/root/method/service_watch.hpp"

#include <sys/socket.h>

namespace pi_agent {

namespace {

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
    if (error.getName() == "org.freedesktop.systemd1.BadUnitSetting")
        throw Failure(FailureKind::sandbox_method, action + " failed: " + escape_for_display(error.getMessage()) + " " + without_drop_ins);
    throw Failure(FailureKind::no_systemd, action + " failed: " + escape_for_display(error.getMessage()) +
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
            list.emplace_back(safe(bind.source), safe(bind.target), bind.may_be_missing, recursive);
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const PairList &value) const
    {
        std::vector<sdbus::Struct<std::string, std::string>> list;
        for (const auto &[first, second] : value.entries)
            list.emplace_back(safe(first), safe(second));
        return sdbus::Variant(list);
    }
    sdbus::Variant operator()(const AddressRanges &value) const
    {
        std::vector<sdbus::Struct<std::int32_t, std::vector<std::uint8_t>, std::uint32_t>> list;
        for (const auto &range : value.ranges)
            list.emplace_back(range.is_v6() ? AF_INET6 : AF_INET, range.address, range.prefix);
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

} // namespace

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

void SystemdBus::start_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams)
{
    asking("starting a program's unit",
           [&] { connection_->call(start_method, safe(name), though_its_slice_goes, to_bus(properties, streams), no_others); });
}

void SystemdBus::ask_for_program(const std::string &name, const std::vector<UnitProperty> &properties, const ServiceStreams &streams)
{
    asking("starting a program's unit",
           [&] { connection_->tell(start_method, safe(name), though_its_slice_goes, to_bus(properties, streams), no_others); });
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
