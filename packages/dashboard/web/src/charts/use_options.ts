// The options of charts, kept in the address.

import { go, useLocation } from "../route";
import type { ChartSetting } from "./charts";
import { readOptions, writeOptions } from "./options";

export function useChartOptions(): ChartSetting {
  const { path, query } = useLocation();
  return {
    options: readOptions(query),
    setOptions(options) {
      const text = writeOptions(query, options);
      go(text ? `${path}?${text}` : path, "replace");
    },
  };
}
