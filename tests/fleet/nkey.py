"""NKEYs of NATS: Ed25519 by the formulas of RFC 8032, slow and for tests alone."""

import base64
import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(one, other):
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f, g * h, f * g, e * h)


def times(number, point):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = add(total, point)
        point, number = add(point, point), number >> 1
    return total


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return (x, y, 1, x * y % P)


BASE = base_point()


def compress(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def crc16(data):
    total = 0
    for byte in data:
        total ^= byte << 8
        for _ in range(8):
            total = (total << 1 ^ 0x1021 if total & 0x8000 else total << 1) & 0xFFFF
    return total.to_bytes(2, "little")


def text(data):
    return base64.b32encode(data + crc16(data)).decode().rstrip("=")


class User:
    """The key of a user: `seed` is its secret, `public` its name."""

    def __init__(self, secret):
        self.secret = secret
        digest = hashlib.sha512(secret).digest()
        number = int.from_bytes(digest[:32], "little")
        self.number, self.prefix = number & (1 << 254) - 8 | 1 << 254, digest[32:]
        self.point = compress(times(self.number, BASE))
        self.public = text(bytes([20 << 3]) + self.point)
        kind = 20 << 3
        self.seed = text(bytes([18 << 3 | kind >> 5, (kind & 31) << 3]) + secret)

    def sign(self, message):
        number = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % L
        point = compress(times(number, BASE))
        challenge = int.from_bytes(hashlib.sha512(point + self.point + message).digest(), "little") % L
        return point + ((number + challenge * self.number) % L).to_bytes(32, "little")
