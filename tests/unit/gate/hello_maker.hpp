// ClientHellos for tests: one of OpenSSL's, and any that a test makes up.
#pragma once

#include <string>
#include <string_view>

namespace pi_agent::test {

inline std::string counted(std::size_t bytes, std::string_view text)
{
    std::string field;
    for (std::size_t left = bytes; left > 0; --left)
        field.push_back(static_cast<char>((text.size() >> (8 * (left - 1))) & 0xffU));
    return field.append(text);
}

inline std::string extension(unsigned kind, std::string_view body)
{
    return std::string{static_cast<char>(kind >> 8U), static_cast<char>(kind & 0xffU)} + counted(2, body);
}

inline std::string server_name(std::string_view name)
{
    return extension(0, counted(2, std::string(1, '\0') + counted(2, name)));
}

// The message without its records.
inline std::string hello_message(std::string_view extensions, bool has_extensions = true)
{
    std::string body = "\x03\x03" + std::string(32, 'r') + counted(1, std::string(32, 's')) + counted(2, "\x13\x01\x13\x02") +
                       counted(1, std::string(1, '\0'));
    if (has_extensions) body += counted(2, extensions);
    return "\x01" + counted(3, body);
}

// In records of `size` bytes each.
inline std::string in_records(std::string_view message, std::size_t size)
{
    std::string records;
    for (std::size_t at = 0; at < message.size(); at += size)
        records += "\x16\x03\x01" + counted(2, message.substr(at, size));
    return records;
}

inline std::string hello_for(std::string_view name)
{
    return in_records(hello_message(server_name(name)), 16'384);
}

// Of OpenSSL 3.0, for api.example.org.
inline std::string hello_of_openssl()
{
    constexpr std::string_view hexadecimal =
        "1603010200010001fc030342b4beedebf65475cfe47c34e6fe8bff86672a72680a562cb869de7cdf24583320d73f5e174daa81f6fcb0db4e27b20d10"
        "58fcb4cc4551d3dd7a2cf8621913f1150024130213031301c02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff0100018f0000"
        "0014001200000f6170692e6578616d706c652e6f7267000b000403000102000a00160014001d0017001e001900180100010101020103010400230000"
        "0010000e000c02683208687474702f312e310016000000170000000d002a0028040305030603080708080809080a080b080408050806040105010601"
        "030303010302040205020602002b00050403040303002d00020101003300260024001d0020586d2941ab1c5eda7df545d80da598279bc1f173344dc1"
        "bc1c54c36ee1027c18001500cc";
    std::string bytes;
    for (std::size_t at = 0; at < hexadecimal.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoul(std::string(hexadecimal.substr(at, 2)), nullptr, 16)));
    return bytes + std::string(0xcc, '\0'); // its padding
}

} // namespace pi_agent::test
