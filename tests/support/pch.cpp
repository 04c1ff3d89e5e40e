// Nothing of its own: compiled so that its precompiled header is there for all test programs.
#include "support/pch.hpp"
