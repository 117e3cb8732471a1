// sdbus-c++ 1.2 and 2.x, where they differ: for systemd_bus.cpp and service_watch.cpp alone.
#pragma once

#include <sdbus-c++/sdbus-c++.h>

#include <chrono>
#include <memory>
#include <string>

namespace pi_agent {

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

} // namespace pi_agent
