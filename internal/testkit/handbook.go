package testkit

// HandbookColumns returns the 14 features of the Fraud Detection Handbook.
func HandbookColumns() []string {
	columns := []string{"TX_DURING_WEEKEND", "TX_DURING_NIGHT"}
	for _, of := range []string{"CUSTOMER_ID_NB_TX", "CUSTOMER_ID_AVG_AMOUNT", "TERMINAL_ID_NB_TX", "TERMINAL_ID_RISK"} {
		for _, days := range []string{"1", "7", "30"} {
			columns = append(columns, of+"_"+days+"DAY_WINDOW")
		}
	}
	return columns
}
