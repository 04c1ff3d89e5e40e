#pragma once

#include "src/pch.hpp"
