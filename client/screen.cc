#include "client/screen.h"

#include <ncurses.h>

#include <algorithm>

namespace baton {

Screen::Screen() : terminal_(newterm(nullptr, stdout, stdin)) {
  if (terminal_ == nullptr) return;
  cbreak();
  noecho();
  curs_set(0);
}

Screen::~Screen() {
  if (terminal_ == nullptr) return;
  endwin();
  delscreen(static_cast<SCREEN*>(terminal_));
}

void Screen::Show(const std::vector<std::string>& lines) {
  erase();
  const int rows = std::min(LINES, static_cast<int>(lines.size()));
  for (int row = 0; row < rows; ++row) mvaddnstr(row, 0, lines[row].c_str(), COLS);
  refresh();
}

bool Screen::WaitForKey(absl::Duration limit) {
  timeout(static_cast<int>(absl::ToInt64Milliseconds(limit)));
  const int key = getch();
  return key != 'q' && key != 'Q';
}

}  // namespace baton
