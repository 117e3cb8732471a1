// Bodies of the reverse route: piece by piece, in one direction.
#pragma once

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include <array>
#include <functional>
#include <memory>
#include <utility>

namespace pi_agent {

constexpr std::size_t route_piece = 16UL * 1024; // a record of TLS has no more

using ErrorCode = boost::system::error_code;

// What a piece of work on a connection needs: that the connection lives until it is done, and learns that something moved.
struct Keep {
    std::shared_ptr<void> alive;
    std::function<void()> moved;
};

// Sends on what comes of a message's body, as soon as it comes, in chunks or as it is. Reads the next piece when the last one is sent: who
// reads slowly slows the other side, and nothing gathers here.
template <typename From, typename To, typename Parser>
class BodyRelay {
public:
    // Whether reading or writing failed; both are good when the body ended as its head said.
    using Done = std::function<void(ErrorCode reading, ErrorCode writing)>;

    BodyRelay(From &from, To &to, boost::beast::flat_buffer &read_ahead, Parser &parser, bool in_chunks) noexcept
        : from_(from), to_(to), read_ahead_(read_ahead), parser_(parser), in_chunks_(in_chunks)
    {
    }

    void run(Keep keep, Done done)
    {
        keep_ = std::move(keep);
        done_ = std::move(done);
        next();
    }

private:
    void next()
    {
        if (parser_.is_done()) {
            end();
            return;
        }
        auto &body = parser_.get().body();
        body.data = piece_.data();
        body.size = piece_.size();
        body.more = true;
        boost::beast::http::async_read_some(from_, read_ahead_, parser_, [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem && problem != boost::beast::http::error::need_buffer)
                finish(problem, {});
            else
                send(piece_.size() - parser_.get().body().size);
        });
    }

    void send(std::size_t size)
    {
        if (size == 0) {
            next();
            return;
        }
        const auto sent = [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem)
                finish({}, problem);
            else
                next();
        };
        const boost::asio::const_buffer piece(piece_.data(), size);
        if (in_chunks_)
            boost::asio::async_write(to_, boost::beast::http::make_chunk(piece), sent);
        else
            boost::asio::async_write(to_, piece, sent);
    }

    void end()
    {
        if (!in_chunks_) {
            finish({}, {});
            return;
        }
        boost::asio::async_write(to_, boost::beast::http::make_chunk_last(),
                                 [this, keep = keep_.alive](ErrorCode problem, std::size_t) { finish({}, problem); });
    }

    void finish(ErrorCode reading, ErrorCode writing)
    {
        const Done done = std::exchange(done_, {});
        keep_ = {};
        done(reading, writing);
    }

    From &from_;
    To &to_;
    boost::beast::flat_buffer &read_ahead_;
    Parser &parser_;
    bool in_chunks_;
    Keep keep_{};
    Done done_{};
    std::array<char, route_piece> piece_{};
};

// One direction of a tunnel: bytes as they come.
template <typename From, typename To>
class ByteRelay {
public:
    ByteRelay(From &from, To &to) noexcept : from_(from), to_(to) {}

    // What was read ahead goes first.
    void run(const boost::beast::flat_buffer &read_ahead, Keep keep, std::function<void()> done)
    {
        keep_ = std::move(keep);
        done_ = std::move(done);
        send(read_ahead.data());
    }

private:
    void next()
    {
        from_.async_read_some(boost::asio::buffer(piece_), [this, keep = keep_.alive](ErrorCode problem, std::size_t size) {
            keep_.moved();
            if (problem)
                finish();
            else
                send(boost::asio::const_buffer(piece_.data(), size));
        });
    }

    void send(boost::asio::const_buffer bytes)
    {
        boost::asio::async_write(to_, bytes, [this, keep = keep_.alive](ErrorCode problem, std::size_t) {
            keep_.moved();
            if (problem)
                finish();
            else
                next();
        });
    }

    void finish()
    {
        const auto done = std::exchange(done_, {});
        keep_ = {};
        done();
    }

    From &from_;
    To &to_;
    Keep keep_{};
    std::function<void()> done_{};
    std::array<char, route_piece> piece_{};
};

} // namespace pi_agent
