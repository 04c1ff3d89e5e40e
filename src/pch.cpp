// Nothing of its own: compiled so that its precompiled header is there for all rooms.
#include "pch.hpp"
