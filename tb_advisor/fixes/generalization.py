"""stub"""
FIXES = ()
