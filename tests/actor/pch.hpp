#pragma once

#include "actors/pch.hpp"
#include "support/pch.hpp"
