// Pairs of a rule and of a host that somebody asks for, drawn at random: many that fit, and many that miss by one letter, bit or port.
#pragma once

#include "support/drawn.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace pi_agent::test {

struct HostPair {
    std::string rule; // as an administrator writes it; some are refused
    std::string host; // as somebody asks for it: HOST, HOST:PORT or a URL; some are no host
};

class HostPairs {
public:
    explicit HostPairs(std::uint64_t seed) : random_(seed) {}

    HostPair draw()
    {
        const std::string host = may(3) ? name() : may(2) ? address_v4() : may(3) ? localhost() : address_v6();
        const std::string of_rule = may(3) && host.find(':') == host.npos ? "*." + host : may(3) ? range(host) : host;
        const std::string port = may(2) ? "" : may(9) ? ":" + one_of({"0", "65536", "080", "+1", "", "http"}) : ":" + a_port();
        const std::string asked = may(6) ? name() : close_to(host);
        return {with_port(may(12) ? odd(of_rule) : of_rule, port), question(asked, may(3) ? ":" + a_port() : port)};
    }

private:
    bool may(unsigned one_in) { return random_() % one_in == 0; }
    std::string one_of(const std::vector<std::string> &texts) { return texts[random_() % texts.size()]; }
    std::string a_port() { return one_of({"443", "80", "22", "5432"}); }
    std::string number(unsigned below) { return std::to_string(random_() % below); }

    std::string label()
    {
        if (may(20)) return one_of({"1", "0x7f", "-a", "a-", "localhost"});
        return one_of({"a", "b", "example", "org", "x-y", "a_b", "_srv", "xn--bcher-kva", "host", "9z"});
    }

    std::string name()
    {
        std::string text = label();
        for (auto more = random_() % 4; more > 0; --more)
            text += "." + label();
        return may(24) ? one_of({"b\xc3\xbc"
                                 "cher.example",
                                 "a..b", ".a", "", "a b", "a@b", "a/b", std::string(64, 'a') + ".org"})
                       : text;
    }

    std::string localhost() { return one_of({"localhost", "app.localhost", "127.0.0.1", "127.9.9.9", "::1", "127.1", "localhost.a"}); }

    std::string address_v4()
    {
        if (may(6))
            return one_of(
                {"169.254.169.254", "100.100.100.200", "198.18.0.5", "0.0.0.0", "224.0.0.1", "10.0.0", "010.0.0.1", "2130706433"});
        return one_of({"10.20", "10.21", "169.254", "172.16", "8.8"}) + "." + number(4) + "." + number(4);
    }

    std::string address_v6()
    {
        if (may(5))
            return one_of(
                {"64:ff9b::a14:1", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "ff02::1", "::", "::ffff:8.8.0.1"});
        return one_of({"fd00::", "fd00:0:0::", "2001:db8::", "FD00::", "2001:DB8:0:0:0:0:0:"}) + number(4);
    }

    std::string range(const std::string &host)
    {
        if (host.find(':') != host.npos)
            return one_of({"fd00::/8", "2001:db8::/32", "fd00::/126", "64::/16", "::/0", "8000::/1", "fd00::1/8"});
        return one_of({"10.20.0.0/16", "10.0.0.0/8", "10.20.0.0/30", "169.254.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "128.0.0.0/1",
                       "10.20.0.1/16", "198.0.0.0/8", "8.8.0.0/33"});
    }

    // Of a host with colons, brackets around it where a port follows.
    std::string with_port(const std::string &host, const std::string &port)
    {
        const bool is_v6 = host.find(':') != host.npos;
        return is_v6 && (!port.empty() || may(3)) && !may(20) ? "[" + host + "]" + port : host + port;
    }

    std::string odd(const std::string &host)
    {
        std::string text = host;
        switch (random_() % 5) {
        case 0:
            return host + ".";
        case 1:
            for (char &one : text)
                if (one >= 'a' && one <= 'z') one = static_cast<char>(one - 'a' + 'A');
            return text;
        case 2:
            return host + one_of({"*", "/8", "/", "..", "%1"});
        case 3:
            return one_of({"x", ".", "-", "*", "https://"}) + host;
        default:
            return host.substr(host.empty() ? 0 : 1);
        }
    }

    std::string close_to(const std::string &host)
    {
        switch (random_() % 12) {
        case 0:
            return label() + "." + host;
        case 1:
            return label() + "." + label() + "." + host;
        case 2:
            return host.substr(host.find('.') == host.npos ? 0 : host.find('.') + 1);
        case 3:
        case 4:
            return odd(host);
        case 5:
            return host.find(':') == host.npos && host.find_first_of("0123456789") == 0 ? "::ffff:" + host : host;
        case 6:
            return address_v4();
        case 7:
            return address_v6();
        case 8:
            return localhost();
        default:
            return host;
        }
    }

    std::string question(const std::string &host, const std::string &port)
    {
        if (!may(6)) return with_port(host, port);
        return one_of({"https://", "http://", "ssh://", "https://u:p@", "ws://"}) + with_port(host, port) +
               one_of({"", "/", "/x?y:1", "?q", "#f"});
    }

    std::mt19937_64 random_;
};

} // namespace pi_agent::test
